// Package interop measures the claims about clients of other projects: VR2Gather's peer and connector, the Unity
// package, the C library. Their replacements are part of the tests of the source tree, which no program may import, so
// the checks run tests there.
package interop
