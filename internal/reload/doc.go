// Package reload reloads files of a running program.
//
// A Watch decides when changed files are read. It is pure: the caller passes the states of the files at each step. A
// LogFile is a file that is opened again after a program such as logrotate has renamed it.
package reload
