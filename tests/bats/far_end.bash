# The far end of egress_clients.bats and egress_attacks_*.bats: a network namespace with the servers that sandboxes try to reach,
# made once a file, in $FAR_WORK; $FAR is a process in it. allowed.test and evil.test are served at one address, as the sites of a
# hosting service are. Sandboxes are called from this namespace (uplink: host), or have an interface that leads to it.

far_possible() { # PROGRAM...: which a file needs besides nginx, dnsmasq and openssl; else its tests are skipped by far_required
    local program
    [ "$(id -u)" = 0 ] && [ -n "${PINFOLD_TEST_PRIVATE-}" ] || return 1
    for program in nginx dnsmasq openssl "$@"; do
        PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || return 1
    done
}
far_required() { # in setup()
    [ -n "${FAR-}" ] || skip "needs root, nginx, dnsmasq, openssl and python3"
}

in_far() { PATH=$PATH:/usr/sbin nsenter -n -t "$FAR" "$@"; }

# The namespace, with loopback and these addresses on it, and a certificate for each of the two sites.
far_begin() { # ADDRESS...
    local address name
    export FAR_WORK=$BATS_FILE_TMPDIR
    unshare -n sleep 1000 </dev/null >/dev/null 2>&1 3>&- &
    export FAR=$!
    wait_for bash -c "[ \"\$(readlink /proc/$FAR/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]"
    chmod 755 "$FAR_WORK"
    cd "$FAR_WORK" || return
    in_far ip link set lo up
    for address; do
        case $address in
        *:*) in_far ip -6 addr add "$address/128" dev lo nodad ;;
        *) in_far ip addr add "$address/32" dev lo ;;
        esac
    done
    for name in allowed evil; do
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$name.test" -addext "subjectAltName=DNS:$name.test" \
            -keyout $name.key -out $name.crt 2>/dev/null
    done
}
# Ends what this file has started, by its id.
far_end() {
    local process
    [ -z "${FAR-}" ] || for process in $(cat "$FAR_WORK"/*.pid 2>/dev/null) "$FAR"; do kill "$process" 2>/dev/null || :; done
}

# The name server, which writes what it is asked to $FAR_WORK/queries.
far_names() { # OPTION-OF-DNSMASQ...
    in_far dnsmasq --conf-file=/dev/null --no-hosts --no-resolv --user=root --bind-interfaces --pid-file="$FAR_WORK/dnsmasq.pid" \
        --log-queries --log-facility="$FAR_WORK/queries" --no-negcache --cache-size=0 "$@" </dev/null >/dev/null 2>&1 3>&-
    wait_for test -s "$FAR_WORK/dnsmasq.pid"
}
# The machine's resolv.conf, from which a broker outside of the container reads whom to ask.
far_resolver() { # ADDRESS
    echo "nameserver $1" >"$FAR_WORK/resolv.conf"
    mount --bind "$FAR_WORK/resolv.conf" "$(realpath /etc/resolv.conf)"
}

# nginx with these lines of its "http" section.
far_web() { # LINES
    cat >"$FAR_WORK/nginx.conf" <<CONF
pid $FAR_WORK/nginx.pid; error_log $FAR_WORK/nginx.log; worker_processes 1; user root;
events { worker_connections 512; }
http {
    access_log off; default_type text/plain;
    client_body_temp_path $FAR_WORK/body; proxy_temp_path $FAR_WORK/proxy; fastcgi_temp_path $FAR_WORK/fastcgi;
    uwsgi_temp_path $FAR_WORK/uwsgi; scgi_temp_path $FAR_WORK/scgi;
    $1
}
CONF
    in_far nginx -c "$FAR_WORK/nginx.conf" </dev/null >"$FAR_WORK/nginx.out" 2>&1 3>&-
    wait_for test -s "$FAR_WORK/nginx.pid"
}
# The lines of a site at addresses and ports ("443 ssl" is a port).
far_site() { # NAME CERTIFICATE "ADDRESS..." "PORT..." LOCATION [default_server]
    local address port
    echo "server { server_name $1.test; ssl_certificate $FAR_WORK/$2.crt; ssl_certificate_key $FAR_WORK/$2.key; $5"
    for address in $3; do
        [[ $address != *:* ]] || address="[$address]"
        for port in $4; do
            if [ "$port" = 443 ]; then port="443 ssl"; fi
            echo "listen $address:$port ${6-};"
        done
    done
    echo "}"
}

# A server in Python, from standard input; it prints "ready".
far_server() { # NAME
    cat >"$FAR_WORK/$1.py"
    nsenter -n -t "$FAR" python3 "$FAR_WORK/$1.py" </dev/null >"$FAR_WORK/$1.out" 2>"$FAR_WORK/$1.err" 3>&- &
    echo $! >"$FAR_WORK/$1.pid"
    wait_for grep -q ready "$FAR_WORK/$1.out"
}
