# containerd in the house, for containerd.bats and cri.bats: with contrib/containerd/pinfold.toml, a bridge by CNI, and the
# images $IMAGE and localhost/pause:1. After `load engine.bash`.

SOCKET=${HOUSE-}/containerd.sock

# containerd takes no runtime's flags: the link's name is the policy.
runtime_binary() { # NAME
    case $1 in
    pinfold) echo "$PINFOLD" ;;
    *) echo "$HOUSE/bin/$1" ;;
    esac
}

containerd_begin() {
    local try
    SOCKET=$HOUSE/containerd.sock
    mkdir -p "$HOUSE/bin"
    ln -s "$PINFOLD" "$HOUSE/bin/pinfold-unconfined"
    cat >"$HOUSE/cni/10-field.conflist" <<-'END'
	{"cniVersion": "1.0.0", "name": "field", "plugins": [
	  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
	   "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.89.8.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
	  {"type": "portmap", "capabilities": {"portMappings": true}}]}
	END
    cat >"$HOUSE/etc/containerd.toml" <<-END
	version = 2
	root = "$HOUSE/containerd"
	state = "$HOUSE/run/containerd"
	oom_score = 0
	disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
	  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.tracing.processor.v1.otlp"]
	[grpc]
	  address = "$SOCKET"
	[plugins."io.containerd.grpc.v1.cri"]
	  sandbox_image = "localhost/pause:1"
	  disable_apparmor = true
	  disable_hugetlb_controller = true
	  tolerate_missing_hugetlb_controller = true
	  restrict_oom_score_adj = true
	  stream_server_address = "127.0.0.1"
	  stream_server_port = "0"
	  [plugins."io.containerd.grpc.v1.cri".containerd]
	    default_runtime_name = "pinfold"
	  [plugins."io.containerd.grpc.v1.cri".cni]
	    bin_dir = "/usr/lib/cni"
	    conf_dir = "$HOUSE/cni"
	END
    sed "s|/usr/local/bin/pinfold-unconfined|$HOUSE/bin/pinfold-unconfined|; s|/usr/local/bin/pinfold\"|$PINFOLD\"|" \
        "$PINFOLD_TESTS/../contrib/containerd/pinfold.toml" >>"$HOUSE/etc/containerd.toml"
    inside containerd -c "$HOUSE/etc/containerd.toml" >"$HOUSE/containerd.log" 2>&1 </dev/null &
    for try in $(seq 100); do
        ! ctr version >/dev/null 2>&1 || break
        sleep 0.2
    done
    ctr version >/dev/null || { tail -20 "$HOUSE/containerd.log" >&2; return 1; }
    make_image_root "$HOUSE/image"
    "$ENGINES/make-image" "$HOUSE/image" "$IMAGE" /bin/sh >"$HOUSE/image.tar"
    "$ENGINES/make-image" "$HOUSE/image" localhost/pause:1 sleep 1000000 >"$HOUSE/pause.tar"
}

ctr() {
    inside timeout -k 5 "${LIMIT:-60}" ctr -a "$SOCKET" "$@"
}
