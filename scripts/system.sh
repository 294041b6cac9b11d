# Shared by the set-up scripts: messages, and installation of system packages. Sourced.

say() { printf '%s\n' "$*"; }

# fail WHAT REMEDY...: prints what was found and what to do, and exits with the code for wrong usage.
fail() {
    printf 'error: %s\n' "$1" >&2
    shift
    printf '  %s\n' "$@" >&2
    exit 2
}

# as_root COMMAND...: runs it as root if that needs no password, else fails at once.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

may_be_root() {
    [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null
}

# package_manager: prints the package manager of this machine, or nothing.
package_manager() {
    for manager in apt-get dnf brew; do
        if command -v "$manager" >/dev/null; then
            echo "$manager"
            return
        fi
    done
}

# may_install MANAGER: Homebrew belongs to the user, the others to root.
may_install() {
    case $1 in
        '') false ;;
        brew) true ;;
        *) may_be_root ;;
    esac
}

# install_first MANAGER PACKAGE...: installs the first of the packages that the system offers.
install_first() {
    manager=$1
    shift
    if [ "$manager" = apt-get ]; then
        as_root apt-get update -qq || true  # old lists may be good enough; the installation will fail if not
    fi
    for package in "$@"; do
        say "  $manager install $package"
        case $manager in
            apt-get) as_root env DEBIAN_FRONTEND=noninteractive \
                apt-get install -y -qq --no-install-recommends "$package" >/dev/null && return ;;
            dnf) as_root dnf install -y -q "$package" && return ;;
            brew) brew install --quiet "$package" && return ;;
        esac
    done
    return 1
}
