// Package codec pulls in cgo.
package codec

import _ "example.org/crooked/pkg/codec/draco"
