// Package duplicator is the packet duplication of paper 003 as published, for comparisons with volnet.
//
// The sender clones the packets to the receiver's host onto every path of its set, with the path in their ToS byte. The
// receiver passes a packet unless a packet with the same IP identification has passed within a second. A controller
// watches the requests for frames: after three intervals above 150 ms it enables all paths. Algorithm 1 then removes
// paths by the arrival times of the copies, until one path is left. Packets from the receiver's host are not copied.
//
// The BPF programs are those of package bpf with the format of the paper. The paper's controller is another host, and
// its messages take a round trip; here they take no time.
package duplicator
