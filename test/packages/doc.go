// Package packages tries the packages of a release on this system.
package packages
