#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the rewriter makes of CUDA C++, and what it refuses, with its line:
#   transform.sh TRANSFORM
set -uo pipefail
transform=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# becomes CODE EXPECTED: all that follows the #line.
becomes() {
    printf '%s\n' "$1" >"$folder/a.cu"
    "$transform" "$folder/a.cu" "$folder/a.cpp" || { echo "refused: $1"; failed=1; return; }
    [ "$(sed 1,2d "$folder/a.cpp")" = "$2" ] || { printf 'of %s\nbecame %s\ninstead of %s\n' "$1" "$(sed 1,2d "$folder/a.cpp")" "$2"; failed=1; }
}

# refused CODE LINE WHY
refused() {
    printf '%s\n' "$1" >"$folder/a.cu"
    if output=$("$transform" "$folder/a.cu" "$folder/a.cpp" 2>&1) || ! grep -qF "a.cu:$2: error: the stand-in for GPUs cannot read this: $3" <<<"$output"; then
        printf 'not refused for "%s": %s\n%s\n' "$3" "$1" "$output"
        failed=1
    fi
}

becomes 'f<<<1, n>>>();' 'standin::launch("f", "a.cu:1", standin::Configuration(1, n), [](const auto&... each) { f(each...); });'
becomes '
a::f<b<c>, 2><<<dim3(1, 2), n, 0, s>>>(x(1, 2),
y);' '
standin::launch("a::f<b<c>, 2>", "a.cu:2", standin::Configuration(dim3(1, 2), n, 0, s), [](const auto&... each) { a::f<b<c>, 2>(each...); }, x(1, 2),
y);'
becomes '// f<<<1>>>, __shared__ int
auto text = "f<<<1, 2>>>(3)", other = '"'\"'"'; /* asm("") */' '// f<<<1>>>, __shared__ int
auto text = "f<<<1, 2>>>(3)", other = '"'\"'"'; /* asm("") */'
becomes '__shared__ std::pair<int, 2> a[n][n + 1], b;' \
    'struct aShared; auto& a = standin::shared<std::pair<int, 2>[n][n + 1], aShared>(); struct bShared; auto& b = standin::shared<std::pair<int, 2>, bShared>();'
becomes 'asm volatile("mov.u32 %0, %%smid;" : "=r"(own));' 'own = decltype(own)(standin::multiprocessor());'
becomes 'asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));' 'time = decltype(time)(standin::globalTimer());'

becomes 'asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));' 'pair = standin::bf16Pair(high, low);'
becomes 'asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0}"
: "+f"(sums[0]));' 'standin::multiplyInWarp(sums, left, right, {__FILE__, __LINE__})
;'
becomes 'int a;
#pragma unroll 4
for (;;) a; // #pragma unroll' 'int a;

for (;;) a; // #pragma unroll'

refused '

asm("bar.sync 0;");' 3 'an instruction of PTX that has no meaning here'
refused 'extern __shared__ float all[];' 1 'shared memory whose size a launch says'
refused '__shared__ int one = 1;' 1 'a shared variable that is no plain one or an array'
refused '__constant__ float table[8];' 1 '__constant__'
refused 'f<<<1, 2>>>;' 1 'a launch without arguments in brackets'
refused 'f<<<1, 2>(3);' 1 'no >>> where there should be one'
exit $failed
