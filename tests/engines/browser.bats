#!/usr/bin/env bats
# Day one with a browser: Debian's Chromium without a window, in podman, under the agent policy.

load engine.bash

bats_require_minimum_version 1.5.0

BROWSER=localhost/browser:1

setup_file() {
    engine_begin podman conmon jq chromium apt-cache
    podman_begin
    "$ENGINES/host-image" base-files base-passwd bash dash coreutils util-linux libc-bin sed grep findutils python3 chromium fonts-dejavu-core >"$HOUSE/browser.tar"
    podman import -q -c 'USER agent' -c 'ENV HOME=/home/agent' "$HOUSE/browser.tar" "$BROWSER"
    rm "$HOUSE/browser.tar"
    mkdir "$HOUSE/site"
    echo '<body><p id="sum">nobody</p><script>document.getElementById("sum").textContent = 20 + 1 + " by script"</script></body>' >"$HOUSE/site/index.html"
}
teardown_file() {
    engine_end
}
setup() {
    rm -f "$HOUSE"/log/*
}

# The page is served in the sandbox, on its loopback, and printed when its script has run. --headless starts no process that
# outlives it; what it says on standard error about a missing D-Bus is its own affair.
page() { # [PODMAN-OPTION...] -- [CHROMIUM-OPTION...]
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    podman run --rm "${options[@]}" -v "$HOUSE/site:/site:ro" "$BROWSER" bash -c '
        python3 -m http.server --bind 127.0.0.1 -d /site 8000 >/dev/null 2>&1 &
        until (: </dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.1; done
        chromium --headless --disable-gpu "$@" --dump-dom http://127.0.0.1:8000/ 2>/tmp/errors || { status=$?; tail -n 5 /tmp/errors; exit $status; }' page "$@"
}

@test "headless Chromium runs a page's script, with --no-sandbox, as browsers in containers are started" {
    run page -- --no-sandbox
    ended 0 "21 by script"
}

@test "Chromium's own sandbox is denied a user namespace; the remedy of that record, applied as it stands, gives it one" {
    run page --
    [ "$status" != 0 ]
    contains "$output" "No usable sandbox"
    remedy=$(cat "$HOUSE"/log/*.jsonl | jq -r 'select(.status_detail == "syscall.not_allowed" and (.message | test("clone"))).unmapped.remedy' | sort -u)
    is "$remedy" 'processes: {userns: true}'

    printf 'version: 1\n%s\n' "$remedy" >"$HOUSE/remedy.yaml"
    FLAGS=policy=$HOUSE/remedy.yaml run page --
    ended 0 "21 by script"
}
