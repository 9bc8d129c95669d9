#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What must not be done with NVIDIA's libraries is found by the stand-ins: refused as the real ones do, complained of
# where the documentation leaves it undefined, or left in the report; and nobody complains of what is allowed:
#   misuse.sh PROGRAM FOLDER [CASE]    the program of misuse.cpp, and where the stand-ins are
set -uo pipefail
program=$1 only=${3:-}
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LD_LIBRARY_PATH=$2 PIPEWRIGHT_STANDIN_GPUS=2 PIPEWRIGHT_STANDIN_REPORT=$folder/report
left=$("$program")

# run CASE: what it and the stand-ins said, and what is left.
run() {
    local status=0
    rm -f "$folder"/report.*
    timeout 60 "$program" "$1" >"$folder/said" 2>&1 || status=$?
    [ $status = 0 ] || echo "ended with $status" >>"$folder/said"
    cat "$folder"/report.* 2>/dev/null | sed 's/.*"held":/left: /; s/,"broken".*//' >>"$folder/said"
}

# found CASE MESSAGE: fails unless this extended regular expression is in what was said.
found() {
    left=$(grep -vx "$1" <<<"$left")
    [ -z "$only" ] || [ "$only" = "$1" ] || return
    run "$1"
    if grep -q '^ended with' "$folder/said" || ! grep -qE "$2" "$folder/said"; then
        printf 'NOT FOUND: %s, which said:\n%s\n' "$1" "$(cat "$folder/said")"
        failed=1
    else
        printf 'found: %-28s %s\n' "$1" "$(grep -m1 -oE ".*($2).*" "$folder/said" | cut -c1-110)"
    fi
}

if [ -z "$only" ]; then
    run right
    [ "$(cat "$folder/said")" = 'left: {}' ] || { echo "complained of what is right:"; cat "$folder/said"; failed=1; }
fi
left=$(grep -vx right <<<"$left")

found splitOfARemainder 'cuDevSmResourceSplitByCount: invalid resource configuration'
found splitOfAGroup 'cuDevSmResourceSplitByCount: invalid resource configuration'
found groupsOfTwoSplits 'cuDevResourceGenerateDesc: invalid resource configuration'
found oneGroupTwice 'cuDevResourceGenerateDesc: invalid resource configuration'
found greenContextBeforeItsStreams 'a green context was destroyed before its streams'
found greenContextTwice 'cuGreenCtxDestroy: invalid device context'
found greenContextWithoutItsFlag 'cuGreenCtxCreate: invalid argument'
found blockingGreenStream 'cuGreenCtxStreamCreate: invalid argument'
found entryPointOfAnOlderVersion 'cuGreenCtxStreamCreate of 12040: only in newer versions'
found entryPointOfANewerDriver 'cudaGetDriverEntryPointByVersion: cudaErrorInvalidValue'

found launchOnAnotherGpu 'cudaGetLastError: cudaErrorInvalidResourceHandle'
found blockTooLarge 'cudaGetLastError: cudaErrorInvalidConfiguration'
found kernelOfAnotherGpusMemory 'a kernel .nothing. on GPU 1 was given memory of GPU 0, which it does not reach'
found kernelOfTheHostsMemory 'a kernel .nothing. on GPU 0 was given pageable memory of the host'
found streamTwice 'cudaStreamDestroy: cudaErrorInvalidResourceHandle'
found streamThatBlocks 'a stream that blocks with the legacy stream'
found streamLeaked 'left: .*"streams":1'
found eventLeaked 'left: .*"events":1'
found memoryLeaked 'left: .*"device memory":1'
found memoryTwice 'cudaFree: cudaErrorInvalidValue'
found captureEndedByAnotherThread 'cudaStreamEndCapture: cudaErrorStreamCaptureWrongThread'
found legacyStreamDuringACapture 'cudaStreamEndCapture: cudaErrorStreamCaptureInvalidated'
found captureThatIsNotJoined 'cudaStreamEndCapture: cudaErrorStreamCaptureUnjoined'
found captureJoinedTooEarly 'cudaStreamEndCapture: cudaErrorStreamCaptureUnjoined'
found captureEndedOnAnotherStream 'cudaStreamEndCapture: cudaErrorStreamCaptureUnmatched'
found capturesThatMerge 'cudaStreamWaitEvent: cudaErrorStreamCaptureMerge'
found waitForACaptureThatIsOver 'cudaStreamWaitEvent: cudaErrorCapturedEvent'
found legacyStreamInACapture 'cudaStreamWaitEvent: cudaErrorStreamCaptureImplicit'
found questionDuringACapture 'cudaStreamQuery: cudaErrorStreamCaptureUnsupported'
found captureWaitsForOthers 'cudaStreamWaitEvent: cudaErrorStreamCaptureIsolation'
found eventNeverRecorded 'cudaEventElapsedTime: cudaErrorInvalidResourceHandle'
found eventOfAnotherGpu 'cudaEventRecord: cudaErrorInvalidResourceHandle'
found copyAgainstItsDirection 'a copy whose pointers do not match its direction'
found copyBeyondItsAllocation 'cudaMemcpyAsync: cudaErrorInvalidValue'
found copyOfAnotherGpu 'cudaMemcpyPeerAsync: cudaErrorInvalidValue'

found misalignedProduct 'a matrix is less aligned than its algorithm was chosen for'
found productOfAnotherGpu "a matrix is not in the memory of the stream's GPU"
found workspaceOfAnotherGpu "a workspace is not in the memory of the stream's GPU"
found productTooSmallAWorkspace "a workspace is not in the memory of the stream's GPU"

found unequalSizes 'a receive of 32 bytes met a send of 64'
found collectivesOfUnequalSizes 'collectives of different kind or size'
found operationCapturedBySomeRanks 'captured by some ranks and issued by others'
found communicatorBeforeItsGraphs 'a communicator was given back while graphs hold calls of it'
PIPEWRIGHT_STANDIN_FAIL=linger:1 found abortAmidACall 'a communicator was given back amid a call with it'
PIPEWRIGHT_STANDIN_FAIL=linger:1 found twoThreadsInACommunicator 'a communicator was used by two threads at a time'
found communicatorTwice 'a communicator was given back twice'
found communicatorThatIsGone 'a communicator that is gone was used'
found communicatorLeaked 'left: .*"communicators":1'
found groupThatDidNotBegin 'a group ended that had not begun'
found streamOfAnotherGpuInNccl 'ncclSend: invalid usage'

found recorderBeforeItsBuffers 'an activity was enabled before there were buffers'
found clockAfterTheRecorder 'the clock was registered after an activity was enabled'
found recorderTwice 'cuptiSubscribe: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED'
found labelThatWasNotBegun 'cuptiActivityPopExternalCorrelationId: CUPTI_ERROR_QUEUE_EMPTY'

[ -z "$left" ] || { echo "nothing is expected of: $left"; failed=1; }
exit $failed
