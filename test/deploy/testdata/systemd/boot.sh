#!/bin/bash
# Boots systemd in namespaces, on a writable copy of the host's file system that ends with it:
#
#   boot.sh FOLDER
#
# FOLDER/files is copied over the root, FOLDER/results appears at /results. vol.target is started.
set -eu
# shellcheck disable=SC2016 # the inner shell expands the variables
exec unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child bash -euc '
mount --make-rprivate /
mkdir "$1/layers"
mount -t tmpfs tmpfs "$1/layers"
mkdir "$1/layers/upper" "$1/layers/work" "$1/layers/root"
root=$1/layers/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/layers/upper,workdir=$1/layers/work" "$root"
cp -a "$1/files/." "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm" "$root/dev/pts" "$root/dev/mqueue" "$root/results" "$root/host"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount --bind "$1/results" "$root/results"
cd "$root"
pivot_root . host
umount -l /host
# systemd expects this of the container that it runs in. Without it, services have no credentials.
mount --make-rshared /
export container=other
exec /lib/systemd/systemd --system --unit=vol.target --log-target=null --show-status=no
' boot "$1"
