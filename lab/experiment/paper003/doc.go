// Package paper003 repeats the experiments of paper 003 on an emulated network: frames by request over TCP, on the five
// paths of the paper's table I.
//
// A viewer requests frames of a server, as in the paper's LiveScan3D. Both ends run in this process. Their sockets
// belong to the hosts of the network.
//
// A conference (dup-sfu) has volsfu's own copies instead: volsfu and two volpeers are processes on hosts with two
// interfaces.
package paper003
