// Package lab measures the claims of volsfu: a Check measures one claim, a Report collects the lines of several checks,
// and a Program is a process that a check starts and watches.
package lab
