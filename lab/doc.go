// Package lab measures what volsfu claims: a Check measures one claim, a Report collects the lines of several checks, and a
// Program is a process that a check starts and watches.
package lab
