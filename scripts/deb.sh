#!/usr/bin/env bash
# Builds a Debian package of the server and the client: the programs in /usr/bin, the unit, the sysctl settings and the
# configuration, which is a configuration file of the package: an upgrade keeps changes, and purging removes it.
#
#   scripts/deb.sh VERSION ARCHITECTURE VOLSFU VOLPEER NOTICES FOLDER
set -euo pipefail
version=${1:?expected the version} architecture=${2:?expected amd64 or arm64}
volsfu=$(realpath "${3:?expected the server}") volpeer=$(realpath "${4:?expected the client}")
notices=$(realpath "${5:?expected THIRD_PARTY_NOTICES}") folder=$(realpath "${6:?expected the folder of the package}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Debian's versions begin with a digit: v1.2.3-4-gabc is 1.2.3+4.gabc, and a commit alone is 0~abc. A candidate precedes
# the release: v1.2.3-rc.1 is 1.2.3~rc.1.
case $version in
	v[0-9]*) version=${version#v} ;;
	*) version=0~$version ;;
esac
if [[ $version == *-* ]]; then
	rest=${version#*-} mark='~'
	[[ $rest != [0-9]* && $rest != dirty ]] || mark=+
	version=${version%%-*}$mark${rest//-/.}
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
install -D -m 755 "$volsfu" "$root/usr/bin/volsfu"
install -D -m 755 "$volpeer" "$root/usr/bin/volpeer"
install -D -m 644 deploy/volsfu.yaml "$root/etc/volsfu/volsfu.yaml"
install -D -m 644 deploy/systemd/90-volsfu.conf "$root/usr/lib/sysctl.d/90-volsfu.conf"
install -D -m 644 "$notices" "$root/usr/share/doc/volsfu/THIRD_PARTY_NOTICES"
install -D -m 644 LICENSE "$root/usr/share/doc/volsfu/copyright"
install -d -m 755 "$root/lib/systemd/system"
sed -e 's,/usr/local/bin/,/usr/bin/,' -e 's,^# Installed as .*,# Installed by the package volsfu. Its configuration is in,' \
	-e 's,/etc/systemd/system/volsfu.service\, with the program in /usr/bin\, ,,' deploy/systemd/volsfu.service \
	>"$root/lib/systemd/system/volsfu.service"
chmod 644 "$root/lib/systemd/system/volsfu.service"

install -d -m 755 "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: volsfu
Version: $version
Architecture: $architecture
Maintainer: volsfu <https://github.com/volsfu/volsfu>
Section: video
Priority: optional
Installed-Size: $(du -ks --exclude=DEBIAN "$root" | cut -f1)
Homepage: https://github.com/volsfu/volsfu
Description: selective forwarding unit for volumetric video
 A WebRTC server for conferences in which people appear as point clouds, with
 a viewer for browsers, and volpeer, the reference client. The programs are
 static; volpeer does not encode Draco.
CONTROL
echo /etc/volsfu/volsfu.yaml >"$root/DEBIAN/conffiles"
install -m 755 deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm "$root/DEBIAN/"
name=$folder/volsfu_${version}_$architecture.deb
# The package of a commit is the same whenever it is built.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} dpkg-deb --root-owner-group -Zxz --build "$root" "$name" >/dev/null
echo "$name"
