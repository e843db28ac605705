//go:build cgo && !portable

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

// mesh is the codec "draco-mesh" (FourCC "drcm"): triangle meshes from any Draco encoder (bit
// stream 2.2, without metadata). The decoder returns the vertices, with their colours if the
// colours are bytes. Applications with meshes publish the frames of their own encoder; encoders of
// this codec reject clouds, because clouds have no triangles.
type mesh struct{}

// maxMeshBytes is the maximum size of a mesh frame. One megabyte holds about 150,000 vertices with
// colours.
const maxMeshBytes = 1 << 20

// freeFaces, facesPerByte and maxFaces limit the faces of a frame. Encoders use one to two bits per
// face in addition to the vertices: one megabyte holds about 300,000 faces. 524,288 faces have at
// most 1,572,864 vertices, fewer than codec.MaxPoints.
const (
	freeFaces    = 1 << 14
	facesPerByte = 16
	maxFaces     = 1 << 19
)

// mostFaces returns the maximum number of faces in a frame of the given size in bytes.
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

// Encode returns an error for every cloud that has points.
func (meshCoder) Encode(dst []byte, cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	if cloud.Len() > 0 {
		return dst, fmt.Errorf(
			"encode draco-mesh: %w: a cloud has no triangles; publish the frames of a mesh encoder",
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
			"decode draco-mesh: %w: %d bytes are not a triangle mesh of bit stream 2.2 without metadata, or are "+
				"inconsistent",
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
