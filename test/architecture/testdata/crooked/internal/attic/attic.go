// Package attic belongs to no layer.
package attic
