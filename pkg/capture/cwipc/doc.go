// Package cwipc reads point clouds recorded by cwipc, the point cloud library of VR2Gather: dumps, files named
// *.cwipcdump with one cloud each, alone or in a folder.
//
// The format is that of cwipc_util (include/cwipc_util/api.h), as its programs on little-endian 64-bit machines write
// it. All numbers are little-endian:
//
//	offset  size  content
//	0       4     "cpcd"
//	4       4     version 0x20210208
//	8       8     capture time in milliseconds
//	16      4     edge of the cube that a point stands for, float32 in metres; 0 if unknown
//	20      4     ignored
//	24      8     number of bytes of the points
//	32      16·n  points: x, y, z as float32 in metres, red, green, blue, tile
//
// Bytes after the points are ignored, as cwipc ignores them. The tile of a point is the set of cameras that saw the
// point, one bit per camera, or a number: clouds have it as the label and as the sources of the point.
//
// A Recording is immutable; any number of goroutines may load from it concurrently.
package cwipc
