#!/usr/bin/env bats
# `pinfold policy generate`: the registry that this machine's package manager uses becomes a policy. Most managers here are
# scripts of the test's; those that are installed are asked too, without a network.
load helpers

setup() {
    local tool
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/pinfold-generate-test.XXXXXX")
    BIN=$WORK/bin
    mkdir "$BIN" "$WORK/home" "$WORK/tmp"
    # What the helper itself needs, so that no manager of the machine's is found.
    for tool in sh timeout awk sed grep sort tr cut fold head tail cat mktemp rm mkdir ln date env; do
        ln -s "$(readlink -f "$(command -v "$tool")")" "$BIN/$tool"
    done
    fake getent 'case $2 in
        *.lan) echo "10.1.2.3 STREAM $2" ;;
        mixed.test) printf "192.0.2.7 STREAM x\nfd00::7 STREAM x\n" ;;
        localhost) echo "127.0.0.1 STREAM localhost" ;;
        metadata.test) echo "169.254.169.254 STREAM x" ;;
        nowhere.test) exit 2 ;;
        *) echo "192.0.2.7 STREAM $2"; esac'
}
teardown() {
    [ -z "$(ls -A "$WORK/tmp")" ] || { ls -A "$WORK/tmp" >&2; return 1; } # the helper removes what it made
    rm -rf "$WORK"
}

fake() { # NAME SCRIPT
    rm -f "$BIN/$1"
    printf '#!/bin/sh\n%s\n' "$2" >"$BIN/$1"
    chmod 755 "$BIN/$1"
}
generate() { # MANAGER [OPTION...]
    env -i PATH="$BIN" HOME="$WORK/home" TMPDIR="$WORK/tmp" "$(readlink -f "$PINFOLD")" policy generate "$@" </dev/null
}
hosts() { # of $output
    sed -n 's/^    - //p' <<<"$output"
}
# The same with the machine's managers, and no network.
generate_really() { # MANAGER
    env TMPDIR="$WORK/tmp" unshare -n "$(readlink -f "$PINFOLD")" policy generate "$@" </dev/null
}
# The host of the first URL in a text.
host_in() { # TEXT
    grep -oE 'https?://[^][[:space:]"'\''`<>()\\]+' <<<"$1" | head -n 1 | sed -E 's,^https?://([^/@]*@)?,,; s,[:/].*,,'
}

@test "npm: the registry, a scope's own, and the host that files come from, each with where it was found" {
    fake npm 'case "$*" in
        "config get registry") echo https://npm.test/ ;;
        "config list") printf "; user config\n@acme:registry = \"https://acme.lan:8443/npm/\"\ncolour = false\n" ;;
        "view npm dist.tarball --registry https://npm.test/ "*) echo https://files.test/npm/-/npm-1.tgz ;;
        *) exit 1; esac'
    run generate npm
    ended 0
    is "$(hosts)" '{host: "npm.test", ports: [443]}
{host: "acme.lan", ports: [8443], private: true}
{host: "files.test", ports: [443]}'
    contains "$output" '# npm config get registry.
    - {host: "npm.test"'
    contains "$output" '# npm config, the registry of @acme. It is 10.1.2.3 here, a private address.'
    contains "$output" '# npm view, where a package comes from.
    - {host: "files.test"'
    contains "$output" '-e npm_config_registry=https://npm.test/'
    contains "$output" 'version: 1
network:
  mode: allowlist
  allowed_hosts:'
}

@test "a registry that does not answer is said, and taken to have its files on the same host" {
    fake npm '[ "$*" != "config get registry" ] || echo http://npm.test:4873/'
    run generate npm
    ended 0
    is "$(hosts)" '{host: "npm.test", ports: [4873]}'
    contains "$(tr -d '#\n' <<<"$output" | tr -s ' ')" "The registry told npm of no file, because it did not answer or has no such package, so where its files come from is not known"
}

@test "pip: the index in force, further indexes, and the host of a file; user and password are left out" {
    fake pip 'case "$*" in
        "install --help") printf "  -i, --index-url <url>  Base URL of the index\n    (default\n    https://me:****@pip.test/simple). This\n  --extra-index-url <url>  more (default https://wrong.test)\n" ;;
        "config list") printf "global.extra-index-url='"'\\\\\\\\nhttps://one.lan/simple\\\\\\\\nhttp://u:p@two.test/x'"'\nglobal.find-links='"'/opt/wheels'"'\nglobal.cert='"'https://no.test'"'\n" ;;
        *--dry-run*) echo "{\"install\": [{\"download_info\": {\"url\": \"https://files.test/a/pip.whl\"}}]}" ;; esac'
    run generate pip
    ended 0
    is "$(hosts)" '{host: "pip.test", ports: [443]}
{host: "one.lan", ports: [443], private: true}
{host: "two.test", ports: [80]}
{host: "files.test", ports: [443]}'
    contains "$output" "PIP_INDEX_URL=https://pip.test/simple"
    lacks "$output" "****"
    lacks "$output" "u:p"
    contains "$output" 'scratch: ["@default", /usr/local]'
}

@test "cargo: the index that its error names, registries of config.toml, and the host of config.json's dl" {
    mkdir "$WORK/home/.cargo"
    printf '[registries.acme]\nindex = "sparse+https://acme.lan/index/"\n' >"$WORK/home/.cargo/config.toml"
    fake cargo '[ "$1" = fetch ] || exit 1
        if [ -n "$CARGO_HTTP_PROXY" ]; then
            printf "    Updating index\nerror: download of config.json failed\nCaused by:\n  failed to download from \`https://cargo.test/config.json\`\n  try http://127.0.0.1:9\n" >&2
        else
            mkdir -p "$CARGO_HOME/registry/index/cargo.test-1"
            echo "{ \"dl\": \"https://crates.test/{crate}/{version}\", \"api\": \"https://api.test\" }" >"$CARGO_HOME/registry/index/cargo.test-1/config.json"
        fi
        exit 101'
    run generate cargo
    ended 0
    is "$(hosts)" '{host: "cargo.test", ports: [443]}
{host: "acme.lan", ports: [443], private: true}
{host: "crates.test", ports: [443]}'
}

@test "go: each proxy of GOPROXY and the checksum database; direct and GOPRIVATE are said" {
    fake go 'case $3$2 in
        GOPROXY) echo "https://go.lan|https://go.test,direct" ;;
        GOSUMDB) echo "sum.test+abc https://db.test/sum" ;;
        GOPRIVATE) echo "git.acme.lan/*" ;; esac'
    run generate go
    ended 0
    is "$(hosts)" '{host: "go.lan", ports: [443], private: true}
{host: "go.test", ports: [443]}
{host: "db.test", ports: [443]}'
    contains "$output" 'GOPROXY has "direct"'
    contains "$output" 'GOPRIVATE is git.acme.lan/*'
    fake go 'case $2 in GOPROXY) echo off ;; GOSUMDB) echo off ;; esac'
    run generate go
    ended 1 "go names no host to allow"
}

@test "go: GOSUMDB as a name alone, and as a name with a key" {
    for value in sum.test sum.test+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8; do
        fake go "case \$2 in GOPROXY) echo https://go.test ;; GOSUMDB) echo $value ;; esac"
        run generate go
        ended 0
        is "$(hosts)" '{host: "go.test", ports: [443]}
{host: "sum.test", ports: [443]}'
    done
}

@test "apt: every source, the host of a package, and a proxy that a sandbox has no use for" {
    fake apt-get 'case "$*" in
        indextargets*) printf "http://apt.test/debian/\nhttps://apt.test/security/\nhttp://apt.test/debian/\ncdrom://[Debian]/\n" ;;
        *download*) echo "'"'http://pool.lan/debian/pool/apt_1.deb' apt_1.deb 1000 SHA256:0"'" ;; esac'
    fake apt-config "echo 'Acquire::http::Proxy \"http://u:p@proxy.test:3142/\";'"
    run generate apt
    ended 0
    is "$(hosts)" '{host: "apt.test", ports: [80]}
{host: "apt.test", ports: [443]}
{host: "pool.lan", ports: [80], private: true}'
    contains "$output" "goes through a proxy, http://proxy.test:3142/."
    contains "$output" "not of the web, so not allowed: cdrom://..."
    contains "$output" "extends: [build]"
}

@test "gem: each source, and the host that Bundler takes for its index" {
    fake gem 'printf "*** CURRENT SOURCES ***\n\nhttps://gem.test/\nhttp://gem.lan:9292\n"'
    fake ruby 'for url; do :; done; case $url in https://gem.test/) echo https://index.test/ ;; *) echo "$url" ;; esac'
    run generate gem
    ended 0
    is "$(hosts)" '{host: "gem.test", ports: [443]}
{host: "index.test", ports: [443]}
{host: "gem.lan", ports: [9292], private: true}'
}

@test "maven: the repositories that it would have asked, not its http blocker" {
    fake mvn 'echo "[FATAL] Non-resolvable parent POM: Cannot access corp (https://maven.lan/all) in offline mode and the artifact x:y:pom:1"
        echo "[ERROR] Cannot access maven-default-http-blocker (http://0.0.0.0/) in offline mode"
        echo "[ERROR] [Help 1] http://help.test/x"; exit 1'
    run generate maven
    ended 0
    is "$(hosts)" '{host: "maven.lan", ports: [443], private: true}'
    contains "$output" "the repository corp."
}

@test "a file's redirects are followed to the host that has it" {
    fake npm 'case "$*" in "config get registry") echo https://npm.test/ ;; view*) echo https://npm.test/npm.tgz ;; esac'
    fake curl 'for url; do :; done; case $url in https://npm.test/*) printf http://cdn.test/a ;; http://cdn.test/*) printf https://cdn.test/a ;; esac'
    run generate npm
    ended 0
    is "$(hosts)" '{host: "npm.test", ports: [443]}
{host: "cdn.test", ports: [80]}
{host: "cdn.test", ports: [443]}'
}

@test "--registry needs no manager, and follows the index" {
    run generate npm --registry https://npm.lan/npm
    ended 0
    is "$(hosts)" '{host: "npm.lan", ports: [443], private: true}'
    fake curl 'for url; do :; done; case $url in
        https://npm.lan/npm/npm/latest) echo "{\"dist\": {\"tarball\": \"https://files.test/npm.tgz\"}}" ;;
        https://pip.lan/simple/pip/) echo "<a href=\"https://wheels.test/pip.whl#sha256=0\">pip</a>" ;;
        https://same.lan/simple/pip/) echo "<a href=\"../../pip.whl\">pip</a>" ;;
        https://cargo.lan/index/config.json) echo "{\"dl\": \"https://dl.test/api\"}" ;; esac'
    run generate npm --registry=https://npm.lan/npm
    contains "$(hosts)" '{host: "files.test", ports: [443]}'
    run generate --registry https://pip.lan/simple pip
    contains "$(hosts)" '{host: "wheels.test", ports: [443]}'
    run generate pip --registry https://same.lan/simple
    lacks "$output" "told pip of no file"
    run generate cargo --registry sparse+https://cargo.lan/index/
    is "$(hosts)" '{host: "cargo.lan", ports: [443], private: true}
{host: "dl.test", ports: [443]}'
}

@test "addresses: private ones are marked, unknown ones are said, link-local ones are not allowed" {
    for address in 10.0.0.1 172.16.0.1 172.31.255.1 192.168.1.1 100.64.0.1 100.127.0.1 127.0.0.1; do
        run generate npm --registry "http://$address:4873/"
        is "$(hosts)" "{host: \"$address\", ports: [4873], private: true}"
    done
    for address in 11.0.0.1 172.15.0.1 172.32.0.1 100.63.0.1 100.128.0.1; do
        run generate npm --registry "https://$address/"
        is "$(hosts)" "{host: \"$address\", ports: [443]}"
    done
    run generate npm --registry 'http://[fd00::1]:4873/'
    is "$(hosts)" '{host: "fd00::1", ports: [4873], private: true}'
    run generate npm --registry https://mixed.test/
    is "$(hosts)" '{host: "mixed.test", ports: [443], private: true}'
    run generate npm --registry https://localhost/
    contains "$output" "a sandbox's own loopback is another one"
    run generate npm --registry https://nowhere.test/
    contains "$output" "It does not resolve on this machine"
    run generate npm --registry https://metadata.test/
    ended 1 "link-local"
    lacks "$output" "- {host"
}

@test "what a manager says is no code, no key and no other line of the policy" {
    marker=$WORK/marker
    for value in "https://npm.test\$(touch $marker)/" "https://npm.test/\`touch $marker\`" "https://npm.test\"}, {host: \"evil.test/" \
        "https://npm.test;touch $marker" 'https://npm.test\nmode: open' "https://-n.test/" "https://a..b/" "https://a/b c" \
        "https://user:pass@good.test@evil.test:1x/" "https://h:70000/" "https://h:0/" "file:///etc/passwd" "--help" "*"; do
        printf '%s\n' "$value" >"$WORK/value"
        fake npm "[ \"\$*\" != 'config get registry' ] || cat $WORK/value"
        run generate npm
        [ ! -e "$marker" ]
        lacks "$output" 'host: "evil.test'
        lacks "$output" $'\n  mode: open'
        [ "$status" = 1 ] || matches "$(hosts)" '^\{host: "[a-z0-9.-]+", ports: \[[0-9]+\]\}$'
    done
    # a scope's name and another manager's words land in comments
    fake npm 'case "$*" in "config get registry") echo https://npm.test/ ;; "config list") printf "@a\\nmode:registry = \"https://x.test\"\n" ;; esac'
    run generate npm
    ended 0
    fake go 'case $2 in GOPROXY) echo https://go.test ;; GOPRIVATE) printf "a\nnetwork: {mode: open}\n\"x\"\r\033[31m" ;; esac'
    run generate go
    ended 0
    is "$(grep -v '^#' <<<"$output" | grep -c 'mode:')" 1
    lacks "$output" $'\033'
    lacks "$output" $'\r'
}

@test "the directory that it is called in has no say" {
    fake npm 'echo "https://$(pwd | tr / x).test/"'
    mkdir "$WORK/project"
    cd "$WORK/project"
    run generate npm
    cd /
    is "$(hosts)" '{host: "x.test", ports: [443]}'
}

@test "errors: an unknown manager, one that is not installed, a URL that is none, a manager that names nothing" {
    run generate yarn
    ended 1 'expected npm, pip, cargo, go, apt, gem or maven, found "yarn"'
    run generate
    ended 1 "takes one of npm"
    run generate npm
    ended 1 "policy generate npm: npm is not installed here: name the registry with --registry URL"
    run generate npm --registry ftp://x.test
    ended 1 "expected a URL that begins with http:// or https://"
    fake npm 'echo "npm ERR! broken" >&2; exit 1'
    run generate npm
    ended 1 "npm names no host to allow"
    is "$(grep -c 'pinfold:' <<<"$output")" 1
}

@test "a manager that hangs or asks does not hold it up" {
    fake npm 'case "$*" in "config get registry") echo https://npm.test/ ;; "config list") read -r answer; echo "read: $answer" >&2 ;; view*) exec sleep 1000 ;; esac'
    ln -s "$(command -v sleep)" "$BIN/sleep"
    real=$(readlink -f "$BIN/timeout")
    fake timeout "case \"\$*\" in *' npm view '*) shift 3; exec $real 0.1 \"\$@\" ;; *) exec $real \"\$@\" ;; esac"
    run generate npm
    ended 0 "of no file"
}

@test "--install stores it where policies are found, and says where" {
    [ "$(id -u)" = 0 ] || skip "needs root"
    fake npm '[ "$*" != "config get registry" ] || echo https://npm.test/'
    run generate npm
    printed=$output
    mkdir "$WORK/etc"
    # a machine's /etc stays as it is
    run unshare -m --propagation private sh -c 'mount --bind "$1/etc" /etc && shift && umask 077 && "$@" && stat -c %a /etc/pinfold/policies/npm.yaml && cat /etc/pinfold/policies/npm.yaml' \
        sh "$WORK" env -i PATH="$BIN" HOME="$WORK/home" TMPDIR="$WORK/tmp" "$(readlink -f "$PINFOLD")" policy generate npm --install
    ended 0
    is "$output" "/etc/pinfold/policies/npm.yaml
644
$printed"
    # a user's own
    chmod 755 "$WORK" "$BIN"
    mkdir "$WORK/user" "$WORK/usertmp"
    chown 1000:1000 "$WORK/user" "$WORK/usertmp"
    run setpriv --reuid 1000 --regid 1000 --clear-groups env -i PATH="$BIN" HOME="$WORK/user" TMPDIR="$WORK/usertmp" \
        XDG_RUNTIME_DIR="$WORK/user" "$(readlink -f "$PINFOLD")" policy generate npm --install
    ended 0
    is "$output" "$WORK/user/.config/pinfold/policies/npm.yaml"
    is "$(cat "$WORK/user/.config/pinfold/policies/npm.yaml")" "$printed"
}

@test "what is printed is a policy: policy check takes it, and nothing that the reader refuses is printed" {
    [ "$(id -u)" = 0 ] || skip "needs root"
    for manager in npm pip cargo go gem maven; do
        generate $manager --registry https://one.lan:8443/x >"$WORK/$manager.yaml"
        run "$(readlink -f "$PINFOLD")" policy show "$WORK/$manager.yaml"
        ended 0 '{host: "one.lan", ports: [8443], private: true}'
    done
    mkdir "$WORK/own"
    cp "$(readlink -f "$PINFOLD")" "$WORK/own/pinfold"
    printf '#!/bin/sh\necho "version: 1"; echo "evil: true"\n' >"$WORK/own/pinfold-policy-generate"
    chmod 755 "$WORK/own/pinfold-policy-generate"
    local PINFOLD=$WORK/own/pinfold
    run generate npm
    ended 1 'pinfold-policy-generate:2:1'
    lacks "$output" "version: 1"
}

@test "a helper that others could write is not run" {
    mkdir "$WORK/own"
    cp "$(readlink -f "$PINFOLD")" "$WORK/own/pinfold"
    cp "$(dirname "$(readlink -f "$PINFOLD")")/pinfold-policy-generate" "$WORK/own/pinfold-policy-generate"
    fake npm '[ "$*" != "config get registry" ] || echo https://npm.test/'
    local PINFOLD=$WORK/own/pinfold
    run generate npm
    ended 0
    printf '#!/bin/sh\necho "evil: true"\n' >"$WORK/own/pinfold-policy-generate"
    chmod 775 "$WORK/own/pinfold-policy-generate"
    run generate npm
    lacks "$output" evil
}

# -- the managers that are installed here -------------------------------------------------------------------------

@test "apt of this machine, without a network" {
    command -v apt-get >/dev/null || skip "no apt-get"
    wanted=$(host_in "$(apt-get indextargets --format '$(REPO_URI)')")
    [ -n "$wanted" ] || skip "apt has no source of the web"
    run generate_really apt
    ended 0 "{host: \"$wanted\", ports: ["
}

@test "npm of this machine, without a network" {
    command -v npm >/dev/null || skip "no npm"
    wanted=$(host_in "$(cd / && npm config get registry)")
    run generate_really npm
    ended 0 "{host: \"$wanted\", ports: ["
}

@test "pip of this machine, without a network, and with an index of the environment's" {
    pip=$(command -v pip || command -v pip3) || skip "no pip"
    wanted=$(host_in "$(COLUMNS=2000 "$pip" install --help | grep -A3 -e '--index-url <url>')")
    run generate_really pip
    ended 0 "{host: \"$wanted\", ports: ["
    PIP_INDEX_URL=http://u:p@127.0.0.1:9/simple run generate_really pip
    ended 0 '{host: "127.0.0.1", ports: [9], private: true}'
}

@test "cargo of this machine, with a registry in its place" {
    command -v cargo >/dev/null || skip "no cargo"
    cargo --version || skip "cargo does not run"
    mkdir "$WORK/cargo"
    printf '[source.crates-io]\nreplace-with = "here"\n[source.here]\nregistry = "sparse+http://127.0.0.1:9/index/"\n' >"$WORK/cargo/config.toml"
    CARGO_HOME=$WORK/cargo run generate_really cargo
    ended 0
    is "$(hosts)" '{host: "127.0.0.1", ports: [9], private: true}'
}

@test "maven of this machine, with a mirror in its settings" {
    command -v mvn >/dev/null || skip "no mvn"
    mkdir -p "$WORK/maven/.m2"
    echo '<settings><mirrors><mirror><id>corp</id><mirrorOf>*</mirrorOf><url>http://127.0.0.1:9/all</url></mirror></mirrors></settings>' \
        >"$WORK/maven/.m2/settings.xml"
    MAVEN_OPTS=-Duser.home=$WORK/maven run generate_really maven
    ended 0
    contains "$(hosts)" '{host: "127.0.0.1", ports: [9], private: true}'
}

@test "gem of this machine, without a network" {
    command -v gem >/dev/null || skip "no gem"
    wanted=$(host_in "$(gem sources)")
    run generate_really gem
    ended 0 "{host: \"$wanted\", ports: ["
}
