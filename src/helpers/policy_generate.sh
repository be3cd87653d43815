#!/bin/sh
# pinfold-policy-generate MANAGER [URL]: prints a policy that lets a sandbox reach the registry that this machine's
# package manager uses. `pinfold policy generate` runs it and checks what it prints.
#
# No registry is known here: each manager is asked which one it uses, and then, as far as the registry answers, where a
# file of its comes from. Whatever a manager or a registry says is foreign: it is only ever a quoted word, and of it only
# a scheme, a host of letters, digits, dots and dashes, and a port reach the policy; comments lose all other characters.
#
# The current directory is left first: a project's own .npmrc, .cargo/config.toml or .mvn must not choose a registry.
set -u
cd / || exit 1
LC_ALL=C
export LC_ALL
exec 3<&- # this file, open for the shell that runs it

manager=${1-} given=${2-}
patience=20 # seconds for one question to a registry
work=$(mktemp -d "${TMPDIR:-/tmp}/pinfold-generate.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
: >"$work/hosts"
: >"$work/items"
: >"$work/notes"
: >"$work/body"
mkdir "$work/project"

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}
have() {
    command -v "$1" >/dev/null 2>&1
}
# A question to a manager or a registry: bounded, and with no terminal to ask on.
ask() {
    timeout -k 2 "$patience" "$@" </dev/null 2>"$work/errors"
}

# -- what is printed ----------------------------------------------------------------------------------------------

# Foreign text for a comment: on one line, and without what could be read as anything else.
clean() {
    printf '%s' "$1" | tr -cd 'A-Za-z0-9 ._:/@+%~=,()*-' | cut -c 1-160
}
note() { # TEXT...
    printf '%s\n' "$*" | fold -s -w 108 | sed 's/^/# /; s/ *$//' >>"$work/notes"
}
body() { # LINES: more of the document
    cat >>"$work/body"
}

# -- addresses ----------------------------------------------------------------------------------------------------

# split URL: scheme, host and port, and the URL as it may be shown, without user and password. Fails for what is no
# address of the web.
split() {
    scheme='' host='' port='' shown=''
    case $1 in
    http://*) scheme=http port=80 ;;
    https://*) scheme=https port=443 ;;
    *) return 1 ;;
    esac
    rest=${1#*://}
    path=${rest#"${rest%%[/?#]*}"}
    rest=${rest%%[/?#]*}
    rest=${rest##*@}
    case $rest in
    \[*\]) host=${rest#\[} host=${host%\]} ;;
    \[*\]:*) host=${rest#\[} host=${host%%\]*} port=${rest##*:} ;;
    *:*) host=${rest%%:*} port=${rest##*:} ;;
    *) host=$rest ;;
    esac
    host=$(printf '%s' "${host%.}" | tr '[:upper:]' '[:lower:]')
    case $host in
    '' | -* | .* | *..*) return 1 ;;
    *:*) case $host in *[!0-9a-f:.]*) return 1 ;; esac ;;
    *[!a-z0-9.-]*) return 1 ;;
    esac
    [ ${#host} -le 253 ] || return 1
    case $port in
    '' | *[!0-9]* | ??????*) return 1 ;;
    esac
    [ "$port" -ge 1 ] && [ "$port" -le 65535 ] || return 1
    shown="$scheme://$(clean "$rest${path%%[?#]*}")"
}

# What an address is, as src/egress/address.c has it: private, refused or public.
kind_of() { # ADDRESS
    case $1 in
    169.254.* | fe[89ab]?:*) echo refused ;;
    0.* | 10.* | 127.* | 192.168.* | 172.1[6-9].* | 172.2[0-9].* | 172.3[01].*) echo private ;;
    100.6[4-9].* | 100.[7-9][0-9].* | 100.1[01][0-9].* | 100.12[0-7].* | 198.1[89].*) echo private ;;
    ::* | f[cd]??:*) echo private ;;
    *) echo public ;;
    esac
}

# allow URL WHY: the URL's host joins the policy, once, with where it was found. Fails for what is no such URL.
allow() {
    split "$1" || return 1
    if grep -qxF "$host $port" "$work/hosts"; then
        return 0
    fi
    printf '%s %s\n' "$host" "$port" >>"$work/hosts"
    case $host in
    *:*) addresses=$host ;;
    *[!0-9.]*) addresses=$(ask getent ahosts "$host" | awk '{ print $1 }' | sort -u) ;;
    *) addresses=$host ;;
    esac
    private='' reason=''
    for address in $addresses; do
        case $(kind_of "$address") in
        refused)
            note "NOT allowed: $host is $(clean "$address") here, a link-local address, as metadata services have."
            return 0
            ;;
        private)
            private=', private: true' reason=" It is $(clean "$address") here, a private address."
            case $address in 127.* | ::1) reason=" It is $(clean "$address") here: a sandbox's own loopback is another one." ;; esac
            ;;
        esac
    done
    [ -n "$addresses" ] || reason=' It does not resolve on this machine; add "private: true" if its address is private.'
    printf '    # %s.%s\n    - {host: "%s", ports: [%s]%s}\n' "$(clean "$2")" "$reason" "$host" "$port" "$private" >>"$work/items"
}

# registry URL WHY: what a manager says that it uses. Anything but a URL of the web is told, not allowed.
registry() {
    [ -n "$1" ] || return 0
    allow "$1" "$2" || note "$(clean "$2"): not of the web, so not allowed: $(clean "${1%%://*}://...")"
}

# files URL WHY: where a file of the registry's comes from, and where that is redirected to.
files() {
    url=$1 hops=0
    allow "$url" "$2" || return 1
    have curl || return 0
    while [ $hops -lt 5 ]; do
        url=$(ask curl -sI -o /dev/null -m 10 --proto '=http,https' -w '%{redirect_url}' --url "$url") || break
        [ -n "$url" ] || break
        allow "$url" "$2, redirected" || break
        hops=$((hops + 1))
    done
    return 0
}
unanswered() { # MANAGER
    note "The registry told $1 of no file, because it did not answer or has no such package, so where its files" \
        "come from is not known: they are taken to be on the same host. Run this again where it answers, or look at what" \
        "\`pinfold log\` denies."
}
fetch() { # URL: at most 1 MiB of it
    have curl || return 1
    ask curl -sfL -m "$patience" --proto '=http,https' --url "$1" | head -c 1048576
}
# The container's manager reads its own configuration, not this machine's.
inside() { # ASSIGNMENT
    note "The manager in the container must use the same registry: -e $(clean "$1")"
}
first_url() { # reads text
    grep -oE 'https?://[^][[:space:]"'\''`<>()\\]+' | head -n 1
}

# -- the managers -------------------------------------------------------------------------------------------------

generate_npm() {
    if [ -n "$given" ]; then
        registry "$given" "--registry"
        url=$(fetch "${given%/}/npm/latest" | grep -oE '"tarball": *"https?://[^"\\]+"' | first_url)
    else
        url=$(ask npm config get registry | first_url)
        index=$url
        registry "$url" "npm config get registry"
        # A scope may have a registry of its own.
        ask npm config list | sed -n 's/^\(@[A-Za-z0-9._~-]*\):registry = "\(http[^"\\]*\)".*/\1 \2/p' >"$work/scopes"
        while read -r scope url; do
            registry "$url" "npm config, the registry of $scope"
        done <"$work/scopes"
        url=$(ask npm view npm dist.tarball --registry "$index" --fetch-retries=0 --fetch-timeout=10000 | first_url)
        given=$index
    fi
    if [ -n "$url" ]; then files "$url" "npm view, where a package comes from"; else unanswered npm; fi
    split "$given" && inside "npm_config_registry=$shown"
    note "npm keeps its cache in ~/.npm, which is private and gone with the container. What is installed into the"
    note "project is written where the project is; npm install --global needs the line that is commented out below."
    note "A token for a private registry is taken out of the environment. Whoever has it can publish, too; to let it"
    note "through: credentials: {environment: [NPM_TOKEN]}"
    body <<-'END'
	# filesystem:
	#   scratch: ["@default", /usr/local]
	END
}

generate_pip() {
    pip=''
    for name in pip pip3; do
        have "$name" && pip=$name && break
    done
    if [ -n "$given" ]; then
        registry "$given" "--registry"
        index=$given
        # Links are absolute where the files are elsewhere.
        fetch "${given%/}/pip/" >"$work/page"
        url=$(grep -oE 'href="https?://[^"#]+' "$work/page" | first_url)
        [ -n "$url" ] || ! grep -q 'href=' "$work/page" || url=$given
    else
        # The help shows the value that is in force, from the environment, the configuration or built in.
        index=$(COLUMNS=2000 ask "$pip" install --help | tr -s ' \n' ' ' |
            sed -n 's/.*--index-url <url> [^(]*(default \(https\{0,1\}:[^)]*\)).*/\1/p' | first_url)
        registry "$index" "pip install --help, the index in force"
        ask "$pip" config list | grep -E "(extra-index-url|find-links)=" |
            grep -oE 'https?://[^][[:space:]"'\''\\]+' >"$work/more"
        while read -r url; do
            registry "$url" "pip config list"
        done <"$work/more"
        url=$(PIP_RETRIES=0 PIP_DEFAULT_TIMEOUT=10 PIP_FIND_LINKS='' ask "$pip" install -q --dry-run --no-deps --ignore-installed --no-cache-dir \
            --disable-pip-version-check --target "$work/target" --report - pip | grep -oE '"url": *"https?://[^"\\]+"' | first_url)
    fi
    if [ -n "$url" ]; then files "$url" "pip install --dry-run, where a file comes from"; else unanswered pip; fi
    if split "$index"; then
        inside "PIP_INDEX_URL=$shown"
        # Without https pip takes nothing from a host that it is not told to trust.
        [ "$scheme" = https ] || inside "PIP_TRUSTED_HOST=$host:$port"
    fi
    note "An image's own packages lie below /usr/local; what root installs there is gone with the container. A virtual"
    note "environment in the project stays. pip keeps its cache in ~/.cache, gone with the container too."
    body <<-'END'
	filesystem:
	  scratch: ["@default", /usr/local]
	END
}

generate_cargo() {
    if [ -n "$given" ]; then
        index=${given#sparse+}
        registry "$index" "--registry"
        url=$(fetch "${index%/}/config.json" | grep -oE '"dl": *"https?://[^"\\]+"' | first_url)
    else
        # cargo says where it looks for a package only when it cannot get there: it is asked with a proxy that is not.
        printf '[package]\nname = "ask"\nversion = "0.0.0"\nedition = "2018"\n[dependencies]\npinfold-asks-where = "*"\n[workspace]\n' \
            >"$work/project/Cargo.toml"
        mkdir "$work/project/src" "$work/home"
        : >"$work/project/src/lib.rs"
        for name in config config.toml credentials credentials.toml; do
            if [ -e "${CARGO_HOME:-${HOME-}/.cargo}/$name" ]; then
                ln -s "${CARGO_HOME:-${HOME-}/.cargo}/$name" "$work/home/$name"
            fi
        done
        CARGO_TERM_COLOR=never NO_PROXY='' no_proxy='' CARGO_HTTP_PROXY=http://127.0.0.1:9 CARGO_NET_RETRY=0 CARGO_HOME=$work/home \
            ask cargo fetch --manifest-path "$work/project/Cargo.toml" >/dev/null
        index=$(first_url <"$work/errors")
        index=${index%config.json}
        [ -n "$index" ] || note "cargo names no registry of the web: $(clean "$(grep -m 1 -E 'location searched|^error' "$work/errors")")"
        registry "$index" "cargo fetch, where it looks for packages"
        sed -n 's/^[[:space:]]*index[[:space:]]*=[[:space:]]*"\(sparse+\)\{0,1\}\(http[^"\\]*\)".*/\2/p' "$work/home"/config* \
            >"$work/more" 2>/dev/null
        while read -r url; do
            registry "$url" "cargo's config.toml, a registry of its own"
        done <"$work/more"
        CARGO_TERM_COLOR=never CARGO_NET_RETRY=0 CARGO_HOME=$work/home ask cargo fetch --manifest-path "$work/project/Cargo.toml" >/dev/null
        url=$(cat "$work/home"/registry/index/*/config.json 2>/dev/null | grep -oE '"dl": *"https?://[^"\\]+"' | first_url)
    fi
    # Without a place for the name in it, the path of a file follows.
    case $url in
    '') unanswered cargo ;;
    *'{'*) files "${url%%\{*}" "config.json of the index, where files come from" ;;
    *) files "${url%/}/libc/0.2.1/download" "config.json of the index, where files come from" ;;
    esac
    note "The container's cargo must use the same registry: a config.toml with [source.crates-io] replace-with = ..."
    note "Where CARGO_HOME is not ~/.cargo, as in images that have it in /usr/local/cargo, its cache is the scratch place below."
    body <<-'END'
	filesystem:
	  scratch: ["@default", /usr/local/cargo]
	END
}

generate_go() {
    if [ -n "$given" ]; then
        proxies=$given sums=''
    else
        proxies=$(ask go env GOPROXY)
        sums=$(ask go env GOSUMDB)
        private=$(ask go env GOPRIVATE)
        [ -z "$private" ] || note "GOPRIVATE is $(clean "$private"): these come from their own hosts, which are to be added."
    fi
    inside "GOPROXY=$(printf '%s' "$proxies" | sed 's,//[^/@|]*@,//,g')"
    printf '%s\n' "$proxies" | tr ',|' '\n\n' >"$work/proxies"
    while read -r url; do
        case $url in
        direct) note "GOPROXY has \"direct\": a module that no proxy has comes from its own host, which is to be added." ;;
        off | '') ;;
        *)
            registry "$url" "${given:+--registry, }go env GOPROXY"
            case $url in http*) files "${url%/}/github.com/pkg/errors/@v/v0.9.1.zip" "go env GOPROXY, where a module comes from" ;; esac
            ;;
        esac
    done <"$work/proxies"
    # "NAME", "NAME+KEY" or "NAME+KEY URL".
    case $sums in
    off | '') [ -n "$given" ] && inside "GONOSUMDB=*, or a GOSUMDB that the proxy serves" ;;
    *' '*) registry "${sums##* }" "go env GOSUMDB" ;;
    *) registry "https://${sums%%+*}" "go env GOSUMDB" ;;
    esac
    note "Go keeps modules and its cache below ~; where GOPATH is /go, as in images, it is the scratch place below."
    body <<-'END'
	filesystem:
	  scratch: ["@default", /go]
	END
}

generate_apt() {
    if [ -n "$given" ]; then
        registry "$given" "--registry"
        files "$given" "--registry"
    else
        ask apt-get indextargets --format '$(REPO_URI)' | sort -u >"$work/uris"
        while read -r url; do
            registry "$url" "apt-get indextargets"
        done <"$work/uris"
        ask apt-get --print-uris download apt | sed -n "s/^'\\(http[^']*\\)'.*/\\1/p" >"$work/files"
        url=$(first_url <"$work/files")
        [ -z "$url" ] || files "$url" "apt-get download, where a package comes from"
        proxy=$(ask apt-config dump | sed -n 's/^Acquire::https\{0,1\}::[Pp]roxy "\([^"]*\)";/\1/p' | head -n 1)
        [ -z "$proxy" ] || note "This machine's apt goes through a proxy, $(split "$proxy" && echo "$shown"). A sandbox's does not."
    fi
    note "The container's own sources.list must name the same hosts."
    note "dpkg writes everywhere, which the preset build allows: what is installed is the container's own."
    body <<-'END'
	extends: [build]
	END
}

generate_gem() {
    if [ -n "$given" ]; then
        printf '%s\n' "$given" >"$work/sources"
    else
        ask gem sources | grep -E '^https?://' >"$work/sources"
    fi
    while read -r url; do
        registry "$url" "${given:+--registry, }gem sources"
        # Bundler may ask another host for the index.
        if have ruby; then
            more=$(ask ruby -rbundler -rbundler/fetcher -e \
                'puts Bundler::Fetcher.new(Bundler::Source::Rubygems::Remote.new(Bundler::URI(ARGV[0]))).fetchers.map { |f| f.send(:fetch_uri) }' \
                "$url" | sort -u)
            for url_of_index in $more; do
                registry "$url_of_index" "Bundler, the index of that source"
            done
        fi
        files "${url%/}/specs.4.8.gz" "gem sources, where the index comes from"
        files "${url%/}/gems/rake-13.0.6.gem" "gem sources, where a gem comes from"
    done <"$work/sources"
    note "The manager in the container must use the same source: gem sources --add, or bundle config mirror."
    note "What root installs lies below /usr/local or /var/lib/gems, and is gone with the container."
    body <<-'END'
	filesystem:
	  scratch: ["@default", /usr/local, /var/lib/gems]
	END
}

generate_maven() {
    if [ -n "$given" ]; then
        registry "$given" "--registry"
        files "$given" "--registry"
    else
        # Offline, it names the repository that it would have asked, mirrors applied. (.mvn: no other project's counts.)
        mkdir "$work/project/.mvn"
        printf '%s' '<project><modelVersion>4.0.0</modelVersion><parent><groupId>pinfold</groupId>' \
            '<artifactId>asks-where</artifactId><version>1</version><relativePath/></parent><artifactId>ask</artifactId></project>' \
            >"$work/project/pom.xml"
        patience=60
        ask mvn --offline --batch-mode --non-recursive "-Dmaven.repo.local=$work/repository" -f "$work/project/pom.xml" validate >"$work/answer"
        grep -oE 'Cannot access [^ ]+ \(https?://[^)]+\)' "$work/answer" | grep -v '//0\.0\.0\.0' | sort -u >"$work/repositories"
        [ -s "$work/repositories" ] || note "Maven names no repository: $(clean "$(grep -m 1 FATAL "$work/answer")")"
        while read -r _ _ id url; do
            url=$(printf '%s' "$url" | first_url)
            registry "$url" "mvn --offline, the repository $id"
            files "${url%/}/junit/junit/4.12/junit-4.12.pom" "Maven's repository, where a file comes from"
        done <"$work/repositories"
    fi
    note "The container's Maven must use the same mirror: a settings.xml in ~/.m2, or mvn --settings FILE."
    note "Maven keeps its repository in ~/.m2, which is private and gone with the container. A project may name more"
    note "repositories in its pom.xml; they are to be added."
}

# -- main ---------------------------------------------------------------------------------------------------------

case $manager in
npm | cargo | go | gem) program=$manager ;;
pip) program=pip; have pip || program=pip3 ;;
apt) program=apt-get ;;
maven) program=mvn ;;
*) fail "expected npm, pip, cargo, go, apt, gem or maven, found \"$(clean "$manager")\"" ;;
esac
if [ -n "$given" ]; then
    split "${given#sparse+}" || fail "--registry: expected a URL that begins with http:// or https://, found \"$(clean "$given")\""
elif ! have "$program"; then
    fail "$program is not installed here: name the registry with --registry URL"
fi

asked="what $program uses on this machine"
[ -z "$given" ] || asked="--registry"
generate_"$manager"
[ -s "$work/items" ] || {
    sed 's/^# //' "$work/notes" >&2
    fail "$program names no host to allow; its last words: $(clean "$(tail -n 1 "$work/errors" 2>/dev/null)")"
}
printf '# The policy %s, written by `pinfold policy generate %s` from %s.\n' "$manager" "$manager" "$asked"
cat "$work/notes"
printf 'version: 1\nnetwork:\n  mode: allowlist\n  allowed_hosts:\n'
cat "$work/items" "$work/body"
