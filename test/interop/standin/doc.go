// Package standin is a small server of the protocol of VR2Gather's original SFU, for tests of what stands before such a server. As it is, it does what a
// peer needs; by its Faults it does one by one what the original does wrong, and what no server should do.
//
// One lock covers everything in it: it carries the few participants of a test.
package standin
