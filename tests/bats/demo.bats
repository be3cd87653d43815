#!/usr/bin/env bats
# The demo, as quickstart shows it.
load helpers

setup() { setup_container; }
teardown() { teardown_container; }

@test "the demo ends with 0 within ten seconds and shows each denial" {
    SECONDS=0
    PINFOLD=$PINFOLD run timeout 60 "$BATS_TEST_DIRNAME/../../demo/run" "$WORK" 3>&-
    ended 0
    [ $SECONDS -le 10 ]
    for reason in credential.env.removed fs.decoy.opened fs.write.read_only net.address.literal net.address.metadata syscall.not_allowed; do
        contains "$output" "$reason"
    done
    lacks "$output" FAULT
}
