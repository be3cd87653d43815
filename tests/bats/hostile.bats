#!/usr/bin/env bats
# Strings of a workload, an image or whoever calls: newlines, escapes of terminals, marks that reorder text, broken UTF-8, JSON in
# names and 4,096 bytes of them. Each record stays one valid line, and `pinfold log` prints nothing that a terminal obeys.
load helpers

setup() {
    setup_container
    POLICY=''
    HOSTILE=$'evil\n{"time":1,"status_detail":"forged"}\r\033[31m\033]0;title\a\x7f\xc2\x9b1m\xe2\x80\xae\xe2\x81\xa6\xff\xc0\x80"\\'
}
teardown() { teardown_container; }

# Nothing on standard input that drives a terminal: no control but the newline, none of C1, no mark of direction, valid UTF-8.
is_harmless() {
    python3 -c '
import sys
text = sys.stdin.buffer.read().decode("utf-8", "strict")
bad = [hex(ord(c)) for c in text if c != "\n" and (ord(c) < 0x20 or 0x7f <= ord(c) <= 0x9f
       or ord(c) in (0x61c, 0x200e, 0x200f, 0x2028, 0x2029) or 0x202a <= ord(c) <= 0x202e or 0x2066 <= ord(c) <= 0x2069)]
sys.exit(f"found {bad[:8]}" if bad else 0)'
}

# The log as a whole, and all that shows it.
log_is_sound() {
    is_harmless <"$LOG"
    jq -ce . "$LOG" >"$WORK/read"
    is "$(wc -l <"$WORK/read")" "$(wc -l <"$LOG")"
    is "$(jq -r .status_detail "$LOG" | grep -c '^forged')" 0
    "$PINFOLD" log "$ID" | is_harmless
    "$PINFOLD" log "$ID" --executions | is_harmless
    "$PINFOLD" log "$ID" --summary | is_harmless
    "$PINFOLD" log "$ID" --json | is_harmless
}

# A script of the container's, with the string as $1.
hostile_script() { # TEXT
    python3 - "$BUNDLE/config.json" "$1" <<'END'
import json, sys
path, text = sys.argv[1:]
config = json.load(open(path))
config["process"]["args"] = ["sh", "-c", text, "sh"]
json.dump(config, open(path, "w"))
END
    printf '%s' "$HOSTILE" >"$ROOT/hostile"
}

@test "a path" {
    hostile_script 'name=$(cat /hostile); true >"/$name"; mkdir "/tmp/$name"; true >"/usr/$name"; rm "/hostile"; exit 0'
    pf_run
    has_record fs.write.read_only '.file.path | startswith("/evil\n{")'
    log_is_sound
}

@test "a path of 4,095 bytes" {
    hostile_script 'part=$(printf "%0200d" 0); long=; i=0; while [ $i -lt 20 ]; do long=$long/$part; i=$((i + 1)); done
        mkdir -p "/tmp$long" && true >"/tmp/../usr/$(cat /hostile)$long"; true >"/$part$part"; true >"/$part"; exit 0'
    pf_run
    has_record fs.write.read_only
    log_is_sound
}

@test "argv and the name of a process" {
    hostile_script 'name=$(cat /hostile); cp /bin/busybox "/tmp/$name"; ln -s /bin/busybox "/tmp/d-$name"
        /bin/ls "$name" "--token=$name"; "/tmp/$name" true; printf "%s" "$name" >/proc/self/comm; true >/x; /bin/ls "$(printf "%05000d" 0)"; exit 0'
    pf_run
    has_record process.launched '.process.cmd_line | startswith("/bin/ls evil\n{")'
    has_record fs.write.read_only
    log_is_sound
}

@test "the arguments of exec, and its environment" {
    start_sleeper
    pf exec --env "$HOSTILE=1" --env "A_TOKEN"$'\xe2\x80\xae\033[31m'"=x" "$ID" /bin/ls "$HOSTILE" >/dev/null 2>&1 || :
    pf exec "$ID" /bin/sh -c 'true >/x' "$HOSTILE" >/dev/null 2>&1 || :
    pf delete --force "$ID"
    has_record fs.write.read_only
    log_is_sound
}

@test "names of variables, and annotations" {
    python3 - "$BUNDLE/config.json" <<'END'
import json, sys
config = json.load(open(sys.argv[1]))
evil = 'evil\n{"status_detail":"forged"}\r\x1b[31m\x07\x7f\x9b1m\u202e\u2066"\\'
config["process"]["env"] += [evil + "_TOKEN=secret", "X" * 4096 + "_PASSWORD=secret"]
config["annotations"] = {"dev.pinfold.run-id": evil, "io.kubernetes.cri.container-name": evil,
    "io.kubernetes.cri.image-name": evil, "io.kubernetes.cri-o.ContainerName": evil, "io.container.manager": evil,
    "org.opencontainers.image.title": evil, "nerdctl/name": evil, evil: evil}
config["process"]["args"] = ["sh", "-c", "true >/x; exit 0"]
config["hostname"] = "plain"
json.dump(config, open(sys.argv[1], "w"))
END
    pf_run
    has_record credential.env.removed
    log_is_sound
}

@test "a name that is asked for" {
    printf 'version: 1\nnetwork: {mode: allowlist, allowed_hosts: [example.com]}\n' >"$WORK/policy.yaml"
    POLICY=$WORK/policy.yaml
    hostile_script 'name=$(cat /hostile); nslookup "$name.example.net" 127.0.0.1; nslookup "$(printf "\033[31m\n\177x.example.net")" 127.0.0.1; nslookup plain.example.net 127.0.0.1; exit 0'
    LIMIT=60 pf_run >/dev/null 2>&1
    has_record dns.name.not_allowed
    log_is_sound
}
