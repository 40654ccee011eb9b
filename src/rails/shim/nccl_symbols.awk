# SPDX-License-Identifier: LGPL-2.1-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# nccl_symbols.txt, and after it the headers of an installed NCCL, to the list of what nccl_forward.c
# makes: OCS_NCCL_SYMBOL(name, whether a job with gates is refused it), both names of each.

function name_add(name, kind) {
	if (name in seen)
		return
	seen[name] = 1
	if (kind != "gate")
		order[++count] = name " " (kind == "refuse" ? "true" : "false")
}

/^(gate|forward|refuse) / { name_add($2, $1) }
/^(NCCL_EXTERN_C +__host__ +)?(ncclResult_t|const +char *\*|void|int|size_t|ncclTeam_t) +nccl[A-Z][A-Za-z0-9_]*\(/ {
	name = $0
	sub(/\(.*/, "", name)
	sub(/.*[ *]nccl/, "", name)
	name_add(name, "forward")
}

END {
	print "/* Made by nccl_symbols.awk. */"
	for (k = 1; k <= count; k++) {
		split(order[k], part, " ")
		print "OCS_NCCL_SYMBOL(nccl" part[1] ", " part[2] ")"
		print "OCS_NCCL_SYMBOL(pnccl" part[1] ", " part[2] ")"
	}
}
