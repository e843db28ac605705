// Package bpf contains the BPF programs of the two edges of a pair, and the Go types of their maps.
//
// The programs are written in C. bpf2go compiles them and generates the Go code; the result is part of the repository,
// so that only a change of the C sources needs clang.
//
// The sender's programs run at the egress of devices, and the receiver's at their ingress. User space writes the rules,
// paths and leases, and reads counters and samples. The programs need no user space to continue: links and maps are
// pinned, and a sender without a lease lets packets leave unchanged.
//
// Three limits follow from the platform.
//   - A packet of IPv4 without the don't-fragment bit that was segmented has another IP identification behind the
//     receiver than its sender gave it (package wire, KindID). A router behind the receiver that fragments such packets
//     of several flows between the same hosts can give two of them the same identification, as any sender above
//     65,536 packets per reassembly time does (RFC 6864, section 4.3).
//   - Segments of UDP over IPv6 have no field that counts. A super-packet is redirected through a device that segments
//     it, and its segments are numbered one by one.
//   - Copies must reach the receiver as they were on the wire. A device without native XDP must not merge UDP datagrams
//     that are forwarded (rx-udp-gro-forwarding, off by default).
package bpf

//go:generate ../../../../scripts/bpf.sh
