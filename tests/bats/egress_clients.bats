#!/usr/bin/env bats
# Programs as they are, without a proxy variable or a word of pinfold's, in a sandbox that may reach allowed.test at 22, 80 and 443:
# each gets there and nowhere else. The far end is a network namespace with nginx, dnsmasq and sshd, from which the broker dials
# (uplink: host); evil.test is served at the same address, and a registry for npm and an index for pip. Of a name that is not
# allowed the name server has never heard: see teardown.
load helpers
load far_end

setup_file() {
    far_possible || return 0
    local name
    far_begin 1.2.3.4
    for name in allowed evil; do
        mkdir -p "www/$name"
        echo "this is $name.test" >"www/$name/file"
    done
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=registry.test" \
        -addext "subjectAltName=DNS:registry.test,DNS:pypi.test" -keyout registry.key -out registry.crt 2>/dev/null
    far_resolver 127.0.0.1
    far_names --address=/{allowed,evil,registry,pypi}.test/1.2.3.4
    site() { far_site "$1" "$1" 1.2.3.4 "80 443" "root $FAR_WORK/www/$1;" "${2-}"; }
    # registries.py
    behind() { far_site "$1" registry 1.2.3.4 "80 443" "location / { proxy_pass http://127.0.0.1:8081; proxy_set_header Host \$host; proxy_set_header X-Forwarded-Proto \$scheme; }"; }
    far_web "$(site evil default_server) $(site allowed) $(behind registry) $(behind pypi)"
}
teardown_file() { far_end; }
setup() {
    setup_container
    far_required
    PROJECT=$WORK/project
    mkdir "$PROJECT"
    cp "$FAR_WORK/allowed.crt" "$PROJECT/ca.pem"
    printf 'network:\n  uplink: host\n  allowed_hosts: ["allowed.test:22,80,443"]\n' >"$WORK/policy.yaml"
}
teardown() {
    local status=0
    # what was asked for outside, by all tests so far; a server of the far end asks for its own machine's name
    [ ! -e "$FAR_WORK/queries" ] ||
        is "$(sed -n 's/.* query\[[^]]*\] \([^ ]*\) from .*/\1/p' "$FAR_WORK/queries" | grep -vxE '(allowed|registry|pypi)\.test' | grep -vxF "$(hostname)")" '' || status=1
    teardown_container || status=1
    return $status
}

# A shell script in a sandbox.
box() { # SCRIPT
    (cd "$PROJECT" && in_far timeout -k 5 100 "$PINFOLD" --root "$STATE" --policy "$WORK/policy.yaml" sandbox --id "$ID" -- sh -c "$1" \
        </dev/null 2>&1 3>&-)
}
needs() { # PROGRAM...: outside of /root, which no sandbox has
    local program
    for program; do
        PATH=/usr/bin:/bin:/usr/sbin command -v "$program" >/dev/null || skip "$program is not installed"
    done
}
# What $output has to be when a program was asked for the file of allowed.test, by HTTP and by HTTPS, and of evil.test, by both and
# by its address, and says "no" where it gets none.
is_held() {
    is "$(grep -v '^$' <<<"$output")" $'this is allowed.test\nthis is allowed.test\nno\nno\nno'
    has_record dns.name.not_allowed '.query.hostname == "evil.test"'
    has_record net.address.literal '.dst_endpoint.ip == "1.2.3.4"'
    has_record net.connection.closed '.dst_endpoint.hostname == "allowed.test" and .dst_endpoint.port == 443'
}
urls='http://allowed.test/file https://allowed.test/file http://evil.test/file https://evil.test/file http://1.2.3.4/file'

@test "curl" {
    needs curl
    run box "for url in $urls; do curl -s -m 20 --cacert ca.pem \$url || echo no; done"
    is_held
}

@test "wget" {
    needs wget
    run box "for url in $urls; do wget -q -T 20 -t 1 --ca-certificate ca.pem -O - \$url || echo no; done"
    is_held
}

@test "Python's urllib" {
    needs python3
    cat >"$PROJECT/fetch.py" <<'PY'
import ssl, sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=20, context=ssl.create_default_context(cafile="ca.pem")).read().decode().strip())
    except OSError:
        print("no")
PY
    run box "/usr/bin/python3 fetch.py $urls"
    is_held
}

@test "Node's fetch" {
    needs node
    cat >"$PROJECT/fetch.mjs" <<'JS'
for (const url of process.argv.slice(2))
    console.log(await fetch(url).then((answer) => answer.text(), () => "no"));
JS
    run box "NODE_EXTRA_CA_CERTS=ca.pem node fetch.mjs $urls"
    is_held
}

@test "Java's HttpClient" {
    needs java javac keytool
    cat >"$PROJECT/Fetch.java" <<'JAVA'
import java.net.URI;
import java.net.http.*;
public class Fetch {
    public static void main(String[] urls) {
        HttpClient client = HttpClient.newHttpClient();
        for (String url : urls)
            try {
                System.out.println(client.send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString()).body().strip());
            } catch (Exception error) {
                System.out.println("no");
            }
    }
}
JAVA
    (cd "$PROJECT" && javac Fetch.java && keytool -importcert -noprompt -file ca.pem -keystore trust -storepass password >/dev/null 2>&1)
    run box "java -Djavax.net.ssl.trustStore=trust -Djavax.net.ssl.trustStorePassword=password Fetch $urls"
    is_held
}

@test "Go's net/http" {
    needs go
    cat >"$PROJECT/fetch.go" <<'GO'
package main

import ("fmt"; "io"; "net/http"; "os")

func main() {
	for _, url := range os.Args[1:] {
		answer, err := http.Get(url)
		if err != nil { fmt.Println("no"); continue }
		body, _ := io.ReadAll(answer.Body)
		fmt.Print(string(body))
	}
}
GO
    (cd "$PROJECT" && HOME=$WORK GOCACHE=$WORK/cache GOFLAGS=-mod=mod GO111MODULE=off go build -o fetch fetch.go)
    run box "SSL_CERT_FILE=ca.pem ./fetch $urls"
    is_held
}

@test "git, by HTTP and HTTPS" {
    needs git
    git init -q "$WORK/source"
    echo "from a repository" >"$WORK/source/readme"
    git -C "$WORK/source" add readme
    git -C "$WORK/source" -c user.name=u -c user.email=u@example.org -c commit.gpgsign=false commit -qm first
    for name in allowed evil; do
        rm -rf "$FAR_WORK/www/$name/repository.git"
        git clone -q --bare "$WORK/source" "$FAR_WORK/www/$name/repository.git"
        git -C "$FAR_WORK/www/$name/repository.git" update-server-info
    done
    run box 'for url in http://allowed.test https://allowed.test http://evil.test https://evil.test http://1.2.3.4; do
        git -c http.sslCAInfo=$PWD/ca.pem clone -q $url/repository.git copy 2>/dev/null && cat copy/readme || echo no; rm -rf copy; done'
    is "$output" $'from a repository\nfrom a repository\nno\nno\nno'
    has_record dns.name.not_allowed '.query.hostname == "evil.test"'
}

@test "ssh, and git over it" {
    needs ssh sshd git ssh-keygen
    mkdir -p /run/sshd
    cd "$FAR_WORK"
    [ -e host ] || ssh-keygen -q -t ed25519 -N '' -f host
    ssh-keygen -q -t ed25519 -N '' -f "$PROJECT/login" -C test
    cp "$PROJECT/login.pub" authorized
    printf 'allowed.test,evil.test,1.2.3.4 %s\n' "$(cut -d' ' -f1,2 host.pub)" >"$PROJECT/known"
    git init -q --bare "$FAR_WORK/over-ssh.git"
    printf 'ListenAddress 1.2.3.4\nHostKey %s/host\nAuthorizedKeysFile %s/authorized\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile %s/sshd.pid\n' \
        "$PWD" "$PWD" "$PWD" >sshd.conf
    in_far /usr/sbin/sshd -f "$PWD/sshd.conf" -E "$PWD/sshd.log" </dev/null 3>&-
    wait_for test -s sshd.pid
    run box 'ssh="ssh -i login -o UserKnownHostsFile=known -o BatchMode=yes -o ConnectTimeout=20"
        for host in allowed.test evil.test 1.2.3.4; do $ssh root@$host echo reached 2>/dev/null || echo no; done
        git init -q work && cd work && echo x >file && git add file && git -c user.name=u -c user.email=u@example.org commit -qm first
        GIT_SSH_COMMAND="ssh -i ../login -o UserKnownHostsFile=../known -o BatchMode=yes" git push -q ssh://root@allowed.test'"$FAR_WORK"'/over-ssh.git HEAD:refs/heads/main && echo pushed'
    is "$output" $'reached\nno\nno\npushed'
    is "$(git -C "$FAR_WORK/over-ssh.git" log --format=%s main)" first
    has_record dns.name.not_allowed '.query.hostname == "evil.test"'
}

# The registry and the index behind nginx, with what they serve.
registries() {
    local directory=$FAR_WORK/registries
    cp "$FAR_WORK/registry.crt" "$PROJECT/ca.pem"
    printf 'network:\n  uplink: host\n  allowed_hosts: [registry.test, pypi.test]\n' >"$WORK/policy.yaml"
    [ ! -e "$FAR_WORK/registries.pid" ] || return 0
    mkdir -p "$directory/npm/package" "$directory/pip"
    echo '{"name": "day-one", "version": "1.0.0", "main": "index.js"}' >"$directory/npm/package/package.json"
    echo 'module.exports = "installed by npm"' >"$directory/npm/package/index.js"
    tar -C "$directory/npm" -czf "$directory/npm/day-one-1.0.0.tgz" package
    python3 - "$directory/pip/day_one-1.0-py3-none-any.whl" <<'PY'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("day_one.py", 'print("installed by pip")\n')
    wheel.writestr("day_one-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: day-one\nVersion: 1.0\n")
    wheel.writestr("day_one-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("day_one-1.0.dist-info/RECORD", "day_one.py,,\nday_one-1.0.dist-info/METADATA,,\nday_one-1.0.dist-info/WHEEL,,\nday_one-1.0.dist-info/RECORD,,\n")
PY
    in_far python3 "$PINFOLD_TESTS/engines/registries.py" "$directory" 8081 </dev/null >/dev/null 2>&1 3>&- &
    echo $! >"$FAR_WORK/registries.pid"
    wait_for in_far bash -c ': </dev/tcp/127.0.0.1/8081'
}
# What the last test asked the name server and the registries for.
reached_outside() { # NAME PATH
    matches "$(cat "$FAR_WORK/queries")" "query\\[A\\] $1 from"
    contains "$(cat "$FAR_WORK/registries/requests")" "$1 $2"
    has_record net.connection.closed ".dst_endpoint.hostname == \"$1\" and .dst_endpoint.port == 443 and .traffic.bytes_in > 0"
    has_record dns.name.not_allowed '.query.hostname == "evil.test"'
    has_record net.address.literal '.dst_endpoint.ip == "1.2.3.4"'
}

@test "npm, from a registry" {
    needs node npm
    registries
    run box 'export npm_config_cafile=$PWD/ca.pem
        for registry in https://registry.test/ https://evil.test/ https://1.2.3.4/; do
            rm -rf node_modules package.json; echo "{}" >package.json
            npm install --registry $registry --fetch-retries 0 --no-audit --no-fund --no-update-notifier day-one >/dev/null 2>&1
            node -p "require(\"day-one\")" 2>/dev/null || echo no
        done'
    is "$output" $'installed by npm\nno\nno'
    reached_outside registry.test /day-one
}

@test "pip, from an index" {
    needs python3
    /usr/bin/python3 -m pip --version >/dev/null 2>&1 || skip "python3-pip is not installed"
    registries
    run box 'for index in https://pypi.test/simple https://evil.test/simple https://1.2.3.4/simple; do
            rm -rf target
            /usr/bin/python3 -m pip install -q --retries 0 --timeout 20 --cert ca.pem --index-url $index --target target --root-user-action ignore \
                --disable-pip-version-check day-one >/dev/null 2>&1
            PYTHONPATH=target /usr/bin/python3 -c "import day_one" 2>/dev/null || echo no
        done'
    is "$output" $'installed by pip\nno\nno'
    reached_outside pypi.test /simple/day-one/
}

@test "apt-get, by HTTP and HTTPS" {
    needs apt-get dpkg-deb
    mkdir -p "$WORK/deb/DEBIAN" "$FAR_WORK/www/allowed/apt" "$FAR_WORK/www/evil/apt"
    printf 'Package: clients\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: a test\n' >"$WORK/deb/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$WORK/deb" "$FAR_WORK/www/allowed/apt/clients.deb" >/dev/null
    (cd "$FAR_WORK/www/allowed/apt" && { dpkg-deb -f clients.deb; echo "Filename: ./clients.deb"; stat -c 'Size: %s' clients.deb
        echo "SHA256: $(sha256sum clients.deb | cut -d' ' -f1)"; } >Packages)
    cp "$FAR_WORK"/www/allowed/apt/* "$FAR_WORK/www/evil/apt/"
    run box 'for url in http://allowed.test https://allowed.test http://evil.test https://evil.test http://1.2.3.4; do
        echo "deb [trusted=yes] $url/apt ./" >list
        state=/tmp/${url#*://}${url%%:*}
        mkdir -p $state/lists/partial $state/archives/partial
        set -- -o Dir::Etc::SourceList=$PWD/list -o Dir::Etc::SourceParts=- -o Dir::State=$state -o Dir::State::status=/dev/null -o Dir::Cache=$state \
            -o APT::Sandbox::User=root -o Acquire::https::CAInfo=$PWD/ca.pem -o Acquire::Languages=none -o Acquire::Retries=0
        apt-get "$@" update >/dev/null 2>&1; (cd /tmp && apt-get "$@" download clients >/dev/null 2>&1 && ls clients_*.deb && rm clients_*.deb) || echo no
    done'
    is "$output" $'clients_1.0_all.deb\nclients_1.0_all.deb\nno\nno\nno'
    has_record dns.name.not_allowed '.query.hostname == "evil.test"'
}
