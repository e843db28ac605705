// Decoding of Draco triangle meshes to their vertices, with Draco.
#ifndef VOLSFU_DRACO_MESH_H_
#define VOLSFU_DRACO_MESH_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct volsfu_mesh volsfu_mesh;

typedef struct {
  volsfu_mesh *mesh;  // to be freed; NULL unless the status is VOLSFU_OK
  uint32_t points;
  int status;
} volsfu_decoded_mesh;

// Decodes a mesh with a maximum number of faces.
volsfu_decoded_mesh volsfu_decode_mesh(const uint8_t *data, size_t size, uint32_t most_faces);

// Copies the vertices to positions and colours, which have room for all of them, white if the mesh has no colours of
// bytes. Vertices with a coordinate that is not a number are omitted. Returns the number of the others.
uint32_t volsfu_copy_mesh(const volsfu_mesh *mesh, float *positions, uint8_t *colors);

void volsfu_free_mesh(volsfu_mesh *mesh);

#ifdef __cplusplus
}
#endif

#endif
