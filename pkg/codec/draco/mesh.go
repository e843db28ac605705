//go:build cgo

package draco

// #cgo noescape volsfu_decode_mesh
// #cgo nocallback volsfu_decode_mesh
// #cgo noescape volsfu_copy_mesh
// #cgo nocallback volsfu_copy_mesh
// #include "inside.h"
// #include "mesh.h"
import "C"

import (
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// mesh is the codec "draco-mesh" (FourCC "drcm"): triangle meshes as any Draco encoder makes them
// (bit stream 2.2, without metadata), of which the vertices are decoded, with their colours where
// those are bytes. Whoever has meshes publishes what their encoder made; encoders of this codec
// refuse clouds, which have no triangles.
type mesh struct{}

// maxMeshBytes is the largest frame of a mesh. A megabyte holds some 150,000 vertices with colours.
const maxMeshBytes = 1 << 20

// freeFaces, facesPerByte and maxFaces bound the faces of a frame. Encoders take one to two bits for each, besides
// what vertices cost: a megabyte holds some 300,000 faces. 524,288 faces have 1,572,864 vertices at most, fewer than
// codec.MaxPoints.
const (
	freeFaces    = 1 << 14
	facesPerByte = 16
	maxFaces     = 1 << 19
)

// mostFaces is how many faces a frame of so many bytes may have.
func mostFaces(bytes int) int { return min(maxFaces, freeFaces+facesPerByte*bytes) }

func init() { codec.Register(mesh{}) }

func (mesh) FourCC() codec.FourCC      { return codec.FourCC{'d', 'r', 'c', 'm'} }
func (mesh) Name() string              { return "draco-mesh" }
func (mesh) NewEncoder() codec.Encoder { return meshCoder{} }
func (mesh) NewDecoder() codec.Decoder { return meshCoder{} }

func (mesh) Capabilities() codec.Capabilities {
	return codec.Capabilities{Colors: true, Steps: []int{0}, MaxPoints: 3 * maxFaces}
}

type meshCoder struct{}

// Encode refuses every cloud that has points.
func (meshCoder) Encode(dst []byte, cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	if cloud.Len() > 0 {
		return dst, fmt.Errorf(
			"encode draco-mesh: %w: a cloud has no triangles; publish what a mesh encoder made",
			codec.ErrParams,
		)
	}
	return dst, nil
}

// Decode replaces the cloud's points by the mesh's vertices.
func (meshCoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	if len(data) > maxMeshBytes {
		return fmt.Errorf(
			"decode draco-mesh: %w: %d bytes, expected at most %d",
			codec.ErrMalformed,
			len(data),
			maxMeshBytes,
		)
	}
	out := C.volsfu_decode_mesh(bytesOf(data), C.size_t(len(data)), C.uint32_t(mostFaces(len(data))))
	switch {
	case out.status == C.VOLSFU_NO_MEMORY:
		return fmt.Errorf("decode draco-mesh: %w", errNoMemory)
	case out.status != C.VOLSFU_OK:
		return fmt.Errorf(
			"decode draco-mesh: %w: not a triangle mesh of bit stream 2.2 without metadata, or one that contradicts itself, in %d bytes",
			codec.ErrMalformed,
			len(data),
		)
	}
	defer C.volsfu_free_mesh(out.mesh)
	n := int(out.points)
	cloud.Positions = slices.Grow(cloud.Positions, n)[:n]
	cloud.Colors = slices.Grow(cloud.Colors, n)[:n]
	n = int(C.volsfu_copy_mesh(out.mesh, floats(cloud.Positions), bytesOf(cloud.Colors)))
	cloud.Positions, cloud.Colors = cloud.Positions[:n], cloud.Colors[:n]
	return nil
}
