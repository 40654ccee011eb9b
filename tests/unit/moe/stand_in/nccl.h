/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TEST_STAND_IN_NCCL_H
#define TEST_STAND_IN_NCCL_H

/* What ocs_moe_nccl.h calls of NCCL, with the types that its documentation gives these calls. */

#include <stddef.h>

typedef struct CUstream_st *cudaStream_t;
typedef struct ncclComm *ncclComm_t;
typedef enum { ncclSuccess = 0, ncclInternalError = 3 } ncclResult_t;
typedef enum { ncclInt8 = 0 } ncclDataType_t;

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
		      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
		      ncclComm_t comm, cudaStream_t stream);

#endif
