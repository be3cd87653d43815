#!/usr/bin/env bats
# More denials than are written: none is lost from the account.
load helpers

setup() {
    setup_container
    POLICY=''
}
teardown() { teardown_container; }

@test "four processes, changing paths: what is recorded and what is counted are the attempts that were made" {
    script_is 'flood() { i=0; while [ $i -lt 700 ]; do true >/$1-$i; i=$((i + 1)); done 2>/dev/null; }
        flood a & flood b & flood c & flood d & wait'
    LIMIT=100 pf_run
    is "$(records '.status_detail == "fs.write.read_only" or .status_detail == "log.suppressed"' |
        jq -s 'map((if .count == null then 1 else .count end) + (.unmapped.suppressed // 0)) | add')" 2800
}
