//go:build cgo && !portable

#include "yardstick.h"

#include <time.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "draco/compression/decode.h"
#include "draco/compression/expert_encode.h"
#include "draco/mesh/mesh.h"
#include "draco/point_cloud/point_cloud.h"

namespace {

int AddAttribute(draco::PointCloud *cloud, draco::GeometryAttribute::Type type, draco::DataType data_type, int size, bool normalized,
                 const void *values) {
  draco::GeometryAttribute attribute;
  attribute.Init(type, nullptr, 3, data_type, normalized, size, 0);
  const int id = cloud->AddAttribute(attribute, true, cloud->num_points());
  cloud->attribute(id)->buffer()->Write(0, values, static_cast<size_t>(size) * cloud->num_points());
  return id;
}

bool Encode(const float *positions, const uint8_t *colors, uint32_t points, const yardstick_params &params, draco::EncoderBuffer *out) {
  draco::PointCloud cloud;
  cloud.set_num_points(points);
  const int position = AddAttribute(&cloud, draco::GeometryAttribute::POSITION, draco::DT_FLOAT32, 12, false, positions);
  if (colors != nullptr) AddAttribute(&cloud, draco::GeometryAttribute::COLOR, draco::DT_UINT8, 3, true, colors);
  draco::ExpertEncoder encoder(cloud);
  encoder.SetEncodingMethod(params.method == 0 ? draco::POINT_CLOUD_SEQUENTIAL_ENCODING : draco::POINT_CLOUD_KD_TREE_ENCODING);
  encoder.SetSpeedOptions(params.speed, params.speed);
  encoder.SetAttributeExplicitQuantization(position, params.bits, 3, params.origin, params.range);
  return encoder.EncodeToBuffer(out).ok();
}

yardstick_frame FrameOf(const draco::EncoderBuffer &buffer) {
  uint8_t *data = static_cast<uint8_t *>(std::malloc(buffer.size()));
  if (data != nullptr) std::memcpy(data, buffer.data(), buffer.size());
  return {data, buffer.size()};
}

std::unique_ptr<draco::PointCloud> Decode(const uint8_t *data, size_t size) {
  draco::DecoderBuffer buffer;
  buffer.Init(reinterpret_cast<const char *>(data), size);
  draco::Decoder decoder;
  auto decoded = decoder.DecodePointCloudFromBuffer(&buffer);
  return decoded.ok() ? std::move(decoded).value() : nullptr;
}

// Copies an attribute of three components; returns false if the cloud has none.
template <class T>
bool Copy(const draco::PointCloud &cloud, draco::GeometryAttribute::Type type, T *to) {
  const draco::PointAttribute *const attribute = cloud.GetNamedAttribute(type);
  if (attribute == nullptr) return false;
  for (uint32_t i = 0; i < cloud.num_points(); ++i) attribute->GetMappedValue(draco::PointIndex(i), to + 3 * i);
  return true;
}

}  // namespace

extern "C" yardstick_frame yardstick_encode(const float *positions, const uint8_t *colors, uint32_t points, yardstick_params params) {
  draco::EncoderBuffer buffer;
  if (!Encode(positions, colors, points, params, &buffer)) return {nullptr, 0};
  return FrameOf(buffer);
}

extern "C" yardstick_frame yardstick_encode_mesh(const float *positions, const uint8_t *colors, uint32_t points, const uint32_t *faces,
                                                 uint32_t face_count, yardstick_params params) {
  draco::Mesh mesh;
  mesh.set_num_points(points);
  const int position = AddAttribute(&mesh, draco::GeometryAttribute::POSITION, draco::DT_FLOAT32, 12, false, positions);
  if (colors != nullptr) AddAttribute(&mesh, draco::GeometryAttribute::COLOR, draco::DT_UINT8, 3, true, colors);
  for (uint32_t i = 0; i < face_count; ++i) {
    const uint32_t *const face = faces + 3 * i;
    mesh.AddFace({{draco::PointIndex(face[0]), draco::PointIndex(face[1]), draco::PointIndex(face[2])}});
  }
  draco::ExpertEncoder encoder(mesh);
  encoder.SetEncodingMethod(params.method == 0 ? draco::MESH_SEQUENTIAL_ENCODING : draco::MESH_EDGEBREAKER_ENCODING);
  encoder.SetSpeedOptions(params.speed, params.speed);
  encoder.SetAttributeQuantization(position, params.bits);
  draco::EncoderBuffer buffer;
  if (!encoder.EncodeToBuffer(&buffer).ok()) return {nullptr, 0};
  return FrameOf(buffer);
}

extern "C" yardstick_cloud yardstick_decode(const uint8_t *data, size_t size) {
  const std::unique_ptr<draco::PointCloud> cloud = Decode(data, size);
  if (cloud == nullptr || cloud->GetNamedAttribute(draco::GeometryAttribute::POSITION) == nullptr) return {nullptr, nullptr, 0, 0};
  const uint32_t points = cloud->num_points();
  const bool colored = cloud->GetNamedAttribute(draco::GeometryAttribute::COLOR) != nullptr;
  yardstick_cloud out = {static_cast<float *>(std::malloc(12 * size_t{points} + 1)),
                         colored ? static_cast<uint8_t *>(std::malloc(3 * size_t{points} + 1)) : nullptr, points, 1};
  if (out.positions == nullptr || (colored && out.colors == nullptr)) std::abort();
  Copy(*cloud, draco::GeometryAttribute::POSITION, out.positions);
  Copy(*cloud, draco::GeometryAttribute::COLOR, out.colors);
  return out;
}

extern "C" int64_t yardstick_thread_time(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) std::abort();
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

extern "C" int64_t yardstick_time_encode(const float *positions, const uint8_t *colors, uint32_t points, yardstick_params params, int rounds) {
  const int64_t begin = yardstick_thread_time();
  draco::EncoderBuffer buffer;
  for (int i = 0; i < rounds; ++i) {
    buffer.Clear();
    if (!Encode(positions, colors, points, params, &buffer)) return -1;
  }
  return (yardstick_thread_time() - begin) / rounds;
}

extern "C" int64_t yardstick_time_decode(const uint8_t *data, size_t size, float *positions, uint8_t *colors, uint32_t points, int rounds) {
  const int64_t begin = yardstick_thread_time();
  for (int i = 0; i < rounds; ++i) {
    const std::unique_ptr<draco::PointCloud> cloud = Decode(data, size);
    if (cloud == nullptr || cloud->num_points() != points) return -1;
    if (!Copy(*cloud, draco::GeometryAttribute::POSITION, positions)) return -1;
    if (colors != nullptr && !Copy(*cloud, draco::GeometryAttribute::COLOR, colors)) return -1;
  }
  return (yardstick_thread_time() - begin) / rounds;
}
