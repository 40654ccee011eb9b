#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
#
# optimise.

. "${srcdir:-.}/ocsctl/ocsctl.sh" || exit 1
OCS_DATADIR=${OCS_SOURCE_DIR:?}/share
export OCS_DATADIR

cat >"$work/tables.yaml" <<'END'
model: tables
precision: fp32
state: 0
batch: {gpu: 64}
layers:
- {name: users, kind: embedding, rows: 3000000, columns: 256, lookups: 1, input: data}
- {name: items, kind: embedding, rows: 3000000, columns: 256, lookups: 1, input: data}
- {name: join, kind: concat, outputs: 512}
- {name: top, kind: dense, inputs: 512, outputs: 64}
END
exits 0 "a file" optimise "$work/tables.yaml" --servers 4 --degree 2 --write "$work/demand.json" --json
printf '%s' "$out" >"$work/out.json"
python3 - "$work" <<'END'
import json, sys
got = json.load(open(sys.argv[1] + "/out.json"))
demand = json.load(open(sys.argv[1] + "/demand.json"))
assert got["demand"] == demand, demand
assert got["memory_gb"] <= 40 and got["evaluations"] <= 400, got
assert got["step_ms"] <= got["data_parallel_ms"], got
assert abs(got["step_ms"] - got["compute_ms"] - sum(got["network_ms"].values())) < 1e-3 * got["step_ms"], got
assert got["shape"] == "dp:4" and len(got["strategy"]["operators"]) == 4, got
# replicated tables would send 2 x 3e6 x 256 x 4 bytes
assert sum(got["bytes"].values()) < 1e9, got
END
result $? "what it prints is what it writes" "$out"
exits 0 "the planner takes it" plan --servers 4 --degree 2 --demand "$work/demand.json" --json
exits 0 "text" optimise "$work/tables.yaml" --servers 4 --degree 2
prints "the assumptions" "assumed: 4 servers of 4 GPUs with 17.6 TFLOPS, 40 GB"
first=$out
exits 0 "again" optimise "$work/tables.yaml" --servers 4 --degree 2
equals "the same" "$first"
exits 0 "all strategies" optimise "$work/tables.yaml" --servers 3 --method exhaustive --json
exhaustive=$out
exits 0 "descent" optimise "$work/tables.yaml" --servers 3 --json
printf '%s\n%s\n' "$exhaustive" "$out" | python3 -c '
import json, sys
a, b = (json.loads(line)["step_ms"] for line in sys.stdin)
sys.exit(abs(a / b - 1) > 1e-6)'
result $? "as good as all strategies" "$exhaustive
$out"
exits 0 "the published search" optimise "$work/tables.yaml" --servers 3 --method mcmc --evaluations 200
exits 0 "dimensions" optimise llama-3-8b --servers 4 --rate 400G --json
prints "a shape" '"shape":"'
prints "strategy" '"microbatch":'
exits 0 "one server" optimise bert --servers 1

exits 3 "too little memory" optimise llama-3-405b --servers 2
says "what is missing" "does not fit 80 GB per GPU on 2 servers"
exits 2 "no such model" optimise lama --servers 2
says "which there are" "llama-3-8b"
exits 2 "no servers" optimise bert
exits 2 "no rate" optimise bert --servers 2 --rate 100
says "an example" "100G or 1.6T"
exits 2 "no method" optimise bert --servers 2 --method fast
exits 2 "too many strategies" optimise bert --servers 8 --method exhaustive
exits 2 "too many servers" optimise bert --servers 2000
printf 'model: one\nprecision: bf16\nbatch: {step: 1}\nlayers:\n- {kind: dense, inputs: 4, outputs: 4}\n' >"$work/one.yaml"
exits 3 "one sample" optimise "$work/one.yaml" --servers 4
says "that it does not divide" "the batch of one does not divide over 4 servers of 8 GPUs"
printf 'model: m\nprecision: bf16\nbatch: {gpu: 1}\nlayers:\n- {kind: dense, inputs: 4}\n' >"$work/bad.yaml"
exits 2 "a broken file" optimise "$work/bad.yaml" --servers 2
says "file and line" 'bad.yaml:5: an operator of kind dense needs the key "outputs"'

finish
