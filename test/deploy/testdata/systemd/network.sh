#!/bin/sh
# Makes the two paths of the edge.
set -eu
ip link set lo up
for i in 0 1; do
	ip link add "p$i" type veth peer name "q$i"
	ip address add "10.200.$i.1/24" dev "p$i"
	ip link set "p$i" up
	ip link set "q$i" up
done
ip route add 10.201.2.0/24 via 10.200.0.2
