// Package picture publishes and receives flat pictures, such as webcams and screens, in VP8 and H.264. The package
// neither encodes nor decodes pictures: a Player sends encoded frames of several qualities, from files or other
// sources, and an Assembler joins received packets to frames.
package picture
