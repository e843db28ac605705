// Package frametimes divides the latency of a frame into layers, as defined by the paper "Latency
// in Real-Time 3D Volumetric Streaming" (sections III-B and IV). A stamp is taken at each stage
// that a tile frame passes, from capture to display. The stamps form a Record; the differences
// between stamps are its Layers.
//
// All stamps of a record refer to one reference clock: the server's clock if there is a server. The
// record also contains, for each host, the conversion of its times to the reference clock and the
// bound of the conversion error. Records are plain data without an owner. They are written and read
// as JSON lines and CSV.
package frametimes
