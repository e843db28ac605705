// Package interop measures the claims about clients of other projects: VR2Gather's peer and connector, the Unity
// package, the C library. Their replacements are part of the tests of the source tree. A program cannot import tests,
// so the checks run the tests.
package interop
