# What the files about Docker load after engine.bash: dockerd in the house, with contrib/docker/daemon.json.

docker() {
    inside timeout -k 5 "${LIMIT:-60}" docker -H "unix://$HOUSE/docker.sock" "$@"
}
docker_run() { # OPTION... IMAGE COMMAND...
    docker run --runtime "${RUNTIME:-pinfold}" "$@"
}
sleeper() { # NAME [OPTION...]
    local name=$1
    shift
    docker_run -d --name "$name" "$@" "$IMAGE" sleep 1000
}
of() { # NAME TEMPLATE
    docker inspect -f "$2" "$1"
}

dockerd_begin() {
    local try
    sed "s|/usr/local/bin/pinfold|$PINFOLD|" "$PINFOLD_TESTS/../contrib/docker/daemon.json" >"$HOUSE/etc/daemon.json"
    # A runtime with the policy of egress.bash, where that was loaded.
    jq --arg path "$PINFOLD" --arg policy "--policy=${HOSTS_POLICY-agent}" \
        '.runtimes["pinfold-hosts"] = {path: $path, runtimeArgs: [$policy]}' "$HOUSE/etc/daemon.json" >"$HOUSE/etc/daemon.json.new"
    mv "$HOUSE/etc/daemon.json.new" "$HOUSE/etc/daemon.json"
    inside dockerd -H "unix://$HOUSE/docker.sock" --data-root "$HOUSE/docker" --exec-root "$HOUSE/run/docker" \
        --pidfile "$HOUSE/docker.pid" --config-file "$HOUSE/etc/daemon.json" >"$HOUSE/dockerd.log" 2>&1 </dev/null &
    for try in $(seq 100); do
        ! docker version >/dev/null 2>&1 || break
        sleep 0.2
    done
    docker version >/dev/null || { tail -20 "$HOUSE/dockerd.log" >&2; return 1; }
    make_image_root "$HOUSE/image"
    tar -C "$HOUSE/image" -c . | docker import -c 'CMD ["/bin/sh"]' -c 'ENV PATH=/bin:/sbin:/usr/bin:/usr/sbin' - "$IMAGE" >/dev/null
}
