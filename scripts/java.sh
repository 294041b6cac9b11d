# Finds the Java that Spark will use, and installs one if needed. Sourced after system.sh.

JAVA_NEEDED=17

# java_version JAVA: the major version, from `17.0.15` as from `1.8.0_402`; nothing if it does not run.
java_version() {
    "$1" -version 2>&1 | sed -nE 's/.* version "(1\.)?([0-9]+).*/\2/p' | head -n 1
}

# Like Spark: the Java of JAVA_HOME if it is set, else the one on the PATH.
find_java() {
    java=${JAVA_HOME:+$JAVA_HOME/bin/java}
    java=${java:-$(command -v java || true)}
    java_seen="none (no JAVA_HOME, no java on the PATH)"
    [ -n "$java" ] || return 1
    found=$(java_version "$java" || true)
    java_seen="$java${JAVA_HOME:+ of JAVA_HOME} (version ${found:-unknown: it does not run})"
    [ "${found:-0}" -ge "$JAVA_NEEDED" ]
}

require_java() {
    find_java && return
    manager=$(package_manager)
    if may_install "$manager" && [ -z "${JAVA_HOME:-}" ]; then
        say "Java $JAVA_NEEDED or newer is needed, found: $java_seen. Installing it"
        case $manager in
            apt-get) packages="openjdk-17-jre-headless openjdk-21-jre-headless" ;;
            dnf) packages="java-17-openjdk-headless java-21-openjdk-headless" ;;
            brew) packages="openjdk@17" ;;
        esac
        # shellcheck disable=SC2086  # a list of package names
        install_first "$manager" $packages || true
        hash -r
        find_java && return
    fi
    fail "Java $JAVA_NEEDED or newer is needed; found: $java_seen" \
        "Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless" \
        "Fedora: sudo dnf install java-17-openjdk-headless" \
        "macOS: brew install openjdk@17 && export JAVA_HOME=\$(brew --prefix openjdk@17)" \
        "If one is installed elsewhere: export JAVA_HOME=/path/to/it. Then make setup again."
}
