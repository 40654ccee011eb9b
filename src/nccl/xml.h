/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NCCL_XML_H
#define OCS_NCCL_XML_H

/* The parser of NCCL, which is no XML parser, rebuilt to say what it would do with
 * a file.  Private to src/nccl; check.h is the way in. */

#include <stdbool.h>
#include <stddef.h>

#include "src/nccl/check.h"

#define OCS_NCCL_ATTRIBUTES_MAX 16 /* that NCCL keeps of an element */
#define OCS_NCCL_ELEMENTS_MAX 255  /* of a topology file */
#define OCS_NCCL_GRAPH_ELEMENTS_MAX 65535
#define OCS_NCCL_CHILDREN_MAX 640

struct ocs_nccl_attribute {
	char *key, *value;
};

/* An element that NCCL keeps; those that it ignores are only counted as faults. */
struct ocs_nccl_element {
	char *name;
	int line;
	struct ocs_nccl_attribute *attributes;
	int nattributes; /* nameless ones, which two blanks make, included */
	bool broken;	 /* the tag has a fault: attributes may be missing */
	struct ocs_nccl_element *parent, **children;
	int nchildren;
};

/* Reads TEXT as a file of KIND.  The root that is returned stands for the file: its
 * children are the outermost elements.  Free with ocs_nccl_xml_free.  ELEMENTS is
 * how many NCCL would store.  Faults are added to FAULTS; after one, reading goes
 * on where the author probably meant, so that one run shows them all. */
struct ocs_nccl_element *ocs_nccl_xml_read(const char *text, size_t length, enum ocs_nccl_kind kind,
					   int *elements, struct ocs_nccl_faults *faults);
void ocs_nccl_xml_free(struct ocs_nccl_element *root);

/* The first value of KEY, as NCCL finds it, or NULL. */
const char *ocs_nccl_attribute(const struct ocs_nccl_element *element, const char *key);

enum ocs_nccl_severity { OCS_NCCL_NOTE, OCS_NCCL_MISREAD, OCS_NCCL_FATAL };

/* Adds a fault; the sentence names what is wrong and what would work. */
void ocs_nccl_fault(struct ocs_nccl_faults *faults, int line, enum ocs_nccl_severity severity,
		    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* check_topology.c and check_graph.c: what the elements say. */
void ocs_nccl_check_topology(const struct ocs_nccl_element *root, int elements,
			     struct ocs_nccl_faults *faults);
void ocs_nccl_check_graph(const struct ocs_nccl_element *root, struct ocs_nccl_faults *faults);

/* Attributes of ELEMENT that are not in KNOWN (NULL-terminated) or come twice.  OWN:
 * how many NCCL itself may have set in the end; more than it has room for overwrite
 * its memory. */
void ocs_nccl_check_attributes(const struct ocs_nccl_element *element, const char *const *known,
			       int own, struct ocs_nccl_faults *faults);
/* KEY as NCCL's number: a fault and false if it is missing (only when NEEDED) or no
 * number.  *VALUE, unless NULL, is what NCCL reads (0 for nonsense). */
bool ocs_nccl_check_number(const struct ocs_nccl_element *element, const char *key, int base,
			   bool needed, long *value, struct ocs_nccl_faults *faults);

#endif
