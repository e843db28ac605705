// Package interop measures what is claimed of clients that others have made: VR2Gather's peer and connector, the Unity package, the C library. What stands for
// them is part of the tests of the source tree, which no program may import, so its checks run tests there.
package interop
