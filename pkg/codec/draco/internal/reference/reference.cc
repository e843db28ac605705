//go:build cgo

#include "reference.h"

#include <cstdlib>
#include <cstring>
#include <memory>

#include "draco/compression/decode.h"
#include "draco/compression/expert_encode.h"
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

}  // namespace

extern "C" reference_frame reference_encode(const float *positions, const uint8_t *colors, uint32_t points, const float *origin, float range,
                                            int bits, int speed, int method) {
  draco::PointCloud cloud;
  cloud.set_num_points(points);
  const int position = AddAttribute(&cloud, draco::GeometryAttribute::POSITION, draco::DT_FLOAT32, 12, false, positions);
  AddAttribute(&cloud, draco::GeometryAttribute::COLOR, draco::DT_UINT8, 3, true, colors);
  draco::ExpertEncoder encoder(cloud);
  encoder.SetEncodingMethod(method == 0 ? draco::POINT_CLOUD_SEQUENTIAL_ENCODING : draco::POINT_CLOUD_KD_TREE_ENCODING);
  encoder.SetSpeedOptions(speed, speed);
  encoder.SetAttributeExplicitQuantization(position, bits, 3, origin, range);
  draco::EncoderBuffer buffer;
  if (!encoder.EncodeToBuffer(&buffer).ok()) return {nullptr, 0};
  uint8_t *data = static_cast<uint8_t *>(std::malloc(buffer.size()));
  if (data != nullptr) std::memcpy(data, buffer.data(), buffer.size());
  return {data, buffer.size()};
}

extern "C" reference_cloud reference_decode(const uint8_t *data, size_t size) {
  draco::DecoderBuffer buffer;
  buffer.Init(reinterpret_cast<const char *>(data), size);
  draco::Decoder decoder;
  auto decoded = decoder.DecodePointCloudFromBuffer(&buffer);
  if (!decoded.ok()) return {nullptr, nullptr, 0, 0};
  const std::unique_ptr<draco::PointCloud> cloud = std::move(decoded).value();
  const draco::PointAttribute *position = cloud->GetNamedAttribute(draco::GeometryAttribute::POSITION);
  const draco::PointAttribute *color = cloud->GetNamedAttribute(draco::GeometryAttribute::COLOR);
  if (position == nullptr || color == nullptr) return {nullptr, nullptr, 0, 0};
  const uint32_t points = cloud->num_points();
  reference_cloud out = {static_cast<float *>(std::malloc(12 * size_t{points} + 1)), static_cast<uint8_t *>(std::malloc(3 * size_t{points} + 1)),
                         points, 1};
  if (out.positions == nullptr || out.colors == nullptr) std::abort();
  for (uint32_t i = 0; i < points; ++i) {
    position->GetMappedValue(draco::PointIndex(i), out.positions + 3 * i);
    color->GetMappedValue(draco::PointIndex(i), out.colors + 3 * i);
  }
  return out;
}
