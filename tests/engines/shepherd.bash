# What the files about an ordinary user's podman load after engine.bash. The user exists in the house alone: its passwd, group
# and subordinate ids are the machine's with one more line.

SHEPHERD=61234 # a uid that no machine gives out by itself

# The user, the user's directories, and the runtime where the user can reach it: a working copy below /root is out of reach.
shepherd_begin() {
    local file
    cp /etc/passwd /etc/group "$HOUSE/etc/"
    echo "shepherd:x:$SHEPHERD:$SHEPHERD::$HOUSE/home:/bin/sh" >>"$HOUSE/etc/passwd"
    echo "shepherd:x:$SHEPHERD:" >>"$HOUSE/etc/group"
    echo "shepherd:700000:65536" | tee -a "$HOUSE/etc/subuid" >>"$HOUSE/etc/subgid"
    for file in passwd group; do
        inside mount --bind "$HOUSE/etc/$file" "/etc/$file"
    done
    inside mkdir -p "/run/user/$SHEPHERD" /run/pinfold-bin
    inside install -m 755 "$PINFOLD" /run/pinfold-bin/pinfold
    inside ln -s pinfold /run/pinfold-bin/pinfold-unconfined
    chmod 711 "$HOUSE"
    chmod 755 "$HOUSE/etc"
    inside chown -R "$SHEPHERD:$SHEPHERD" "/run/user/$SHEPHERD" "$HOUSE"/{home,tmp,root,run,libpod,networks}
    # What slirp4netns opens; the machine's own may be root's alone.
    [ ! -e /dev/net/tun ] || inside sh -c 'mknod -m 666 /run/tun c 10 200 && mount --bind /run/tun /dev/net/tun'
    PINFOLD=/run/pinfold-bin/pinfold
}
# As the user, with what a log-in gives.
inside_as_user() {
    inside setpriv --reuid "$SHEPHERD" --regid "$SHEPHERD" --init-groups --inh-caps=-all \
        env -C "$HOUSE/home" XDG_RUNTIME_DIR="/run/user/$SHEPHERD" USER=shepherd "$@"
}
podman() {
    local words
    podman_words
    inside_as_user timeout -k 5 "${LIMIT:-60}" "${words[@]}" "$@"
}
podman_on_terminal() {
    local words
    podman_words
    inside_as_user script -qec "stty rows 33 cols 77; $(printf '%q ' timeout --foreground -k 5 60 "${words[@]}" "$@")" /dev/null </dev/null
}
