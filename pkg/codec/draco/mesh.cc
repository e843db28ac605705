//go:build cgo && !portable

#include "mesh.h"

#include <cmath>
#include <memory>

#include "draco/compression/config/decoder_options.h"
#include "draco/compression/mesh/mesh_edgebreaker_decoder.h"
#include "draco/compression/mesh/mesh_sequential_decoder.h"
#include "draco/core/decoder_buffer.h"
#include "draco/core/varint_decoding.h"
#include "draco/mesh/mesh.h"
#include "inside.h"

struct volsfu_mesh {
  draco::Mesh mesh;
};

namespace {

// The permitted attributes of a mesh: position, normal, colour, texture coordinates and some more, and their maximum
// bytes per point.
constexpr int kMostAttributes = 8;
constexpr int64_t kMostPointBytes = 128;

// One of Draco's decoders with a check of the announced sizes before it allocates memory.
template <class DecoderT>
class Bounded : public DecoderT {
 protected:
  bool DecodeAllAttributes() override {
    const draco::PointCloud &cloud = *this->point_cloud();
    if (cloud.num_attributes() > kMostAttributes) return false;
    int64_t bytes = 0;
    for (int i = 0; i < cloud.num_attributes(); ++i) {
      bytes += int64_t{cloud.attribute(i)->num_components()} * draco::DataTypeLength(cloud.attribute(i)->data_type());
    }
    return bytes <= kMostPointBytes && DecoderT::DecodeAllAttributes();
  }
};

// Reports whether the numbers of faces and vertices, which are next in the buffer, are within the limits.
bool IsBounded(draco::DecoderBuffer ahead, bool edgebreaker, uint32_t most_faces) {
  uint32_t first = 0, second = 0;
  uint8_t traversal = 0;
  if (edgebreaker && !ahead.Decode(&traversal)) return false;
  if (!draco::DecodeVarint(&first, &ahead) || !draco::DecodeVarint(&second, &ahead)) return false;
  const uint32_t faces = edgebreaker ? second : first, vertices = edgebreaker ? first : second;
  return faces <= most_faces && vertices <= 3 * faces;
}

bool Decode(draco::DecoderBuffer *in, uint32_t most_faces, draco::Mesh *mesh) {
  draco::DecoderBuffer ahead = *in;
  draco::DracoHeader header;
  if (!draco::PointCloudDecoder::DecodeHeader(&ahead, &header).ok()) return false;
  // Draco's other versions have other headers; metadata has no limits.
  if (header.version_major != 2 || header.version_minor != 2 || header.flags != 0) return false;
  ahead.set_bitstream_version(DRACO_BITSTREAM_VERSION(2, 2));
  const bool edgebreaker = header.encoder_method == draco::MESH_EDGEBREAKER_ENCODING;
  if (header.encoder_type != draco::TRIANGULAR_MESH || !IsBounded(ahead, edgebreaker, most_faces)) return false;
  const draco::DecoderOptions options;
  if (edgebreaker) return Bounded<draco::MeshEdgebreakerDecoder>().Decode(options, in, mesh).ok();
  return header.encoder_method == draco::MESH_SEQUENTIAL_ENCODING && Bounded<draco::MeshSequentialDecoder>().Decode(options, in, mesh).ok();
}

// Returns an attribute of a type with at least three components, or null.
const draco::PointAttribute *Find(const draco::Mesh &mesh, draco::GeometryAttribute::Type type, draco::DataType data_type) {
  const draco::PointAttribute *const attribute = mesh.GetNamedAttribute(type);
  return attribute != nullptr && attribute->data_type() == data_type && attribute->num_components() >= 3 ? attribute : nullptr;
}

}  // namespace

extern "C" volsfu_decoded_mesh volsfu_decode_mesh(const uint8_t *data, size_t size, uint32_t most_faces) {
  try {
    auto out = std::make_unique<volsfu_mesh>();
    draco::DecoderBuffer in;
    in.Init(reinterpret_cast<const char *>(data), size);
    if (!Decode(&in, most_faces, &out->mesh)) return {nullptr, 0, VOLSFU_MALFORMED};
    if (Find(out->mesh, draco::GeometryAttribute::POSITION, draco::DT_FLOAT32) == nullptr) return {nullptr, 0, VOLSFU_MALFORMED};
    const uint32_t points = out->mesh.num_points();
    return {out.release(), points, VOLSFU_OK};
  } catch (...) {
    // Only allocations throw here.
    return {nullptr, 0, VOLSFU_NO_MEMORY};
  }
}

extern "C" uint32_t volsfu_copy_mesh(const volsfu_mesh *mesh, float *positions, uint8_t *colors) {
  const draco::PointAttribute *const position = Find(mesh->mesh, draco::GeometryAttribute::POSITION, draco::DT_FLOAT32);
  const draco::PointAttribute *const color = Find(mesh->mesh, draco::GeometryAttribute::COLOR, draco::DT_UINT8);
  uint32_t copied = 0;
  for (draco::PointIndex i(0); i < mesh->mesh.num_points(); ++i) {
    const float *const place = reinterpret_cast<const float *>(position->GetAddressOfMappedIndex(i));
    if (!std::isfinite(place[0]) || !std::isfinite(place[1]) || !std::isfinite(place[2])) continue;
    const uint8_t *const shade = color == nullptr ? nullptr : color->GetAddressOfMappedIndex(i);
    for (int a = 0; a < 3; ++a) {
      positions[3 * copied + a] = place[a];
      colors[3 * copied + a] = shade == nullptr ? 255 : shade[a];
    }
    ++copied;
  }
  return copied;
}

extern "C" void volsfu_free_mesh(volsfu_mesh *mesh) { delete mesh; }
