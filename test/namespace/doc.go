// Package namespace makes network namespaces for tests. They need root and the command ip, and exist on Linux only.
package namespace
