package payload

import "fmt"

// Fragmenter cuts the frames of one stream into RTP payloads. The zero value is ready to use. A
// Fragmenter reuses the memory of the parity for the next frame; without parity it allocates
// nothing.
type Fragmenter struct {
	frame Descriptor
	data  []byte

	coder   coder
	parity  []byte // parity fragments, concatenated
	encoded bool
	last    [FragmentSize]byte // last source fragment, padded with zeros for the parity code
}

// Begin starts the next frame. Begin uses the fields Prefixed, Quality, Frame and Parity of frame;
// Index, Source and Length follow from data. If Prefixed is set, data begins with a prefix, as
// written by Prefix.AppendTo. Begin does not copy data: data must stay unchanged until the next
// Begin or Release. Errors wrap ErrFrame.
func (f *Fragmenter) Begin(frame Descriptor, data []byte) error {
	source := SourceFragments(len(data))
	switch {
	case source >= maxPackets:
		return fmt.Errorf("%w: %d bytes, expected at most %d", ErrFrame, len(data), (maxPackets-1)*FragmentSize)
	case frame.Prefixed && len(data) < PrefixSize:
		return fmt.Errorf("%w: %d bytes with a prefix, expected at least %d", ErrFrame, len(data), PrefixSize)
	case int(frame.Parity) > MaxParity(source):
		return fmt.Errorf(
			"%w: %d parity fragments for %d source fragments, expected at most %d",
			ErrFrame,
			frame.Parity,
			source,
			MaxParity(source),
		)
	}
	frame.Index, frame.Source, frame.Length = 0, uint16(source), uint32(len(data))
	f.frame, f.data, f.encoded = frame, data, false
	return nil
}

// Release drops the current frame. The data may change afterwards. Until the next Begin there is no current frame.
func (f *Fragmenter) Release() { f.frame, f.data = Descriptor{}, nil }

// Packets returns the number of packets of the current frame, source and parity.
func (f *Fragmenter) Packets() int { return f.frame.Packets() }

// Fragment returns the descriptor and the data of one packet of the current frame without a copy.
// The data of a source fragment refers to the data passed to Begin; the data of a parity fragment
// refers to memory that the next Begin reuses. Parity is computed when the first parity fragment is
// requested, so that parity delays no source fragment.
func (f *Fragmenter) Fragment(index int) (Descriptor, []byte, error) {
	if index < 0 || index >= f.Packets() {
		return Descriptor{}, nil, fmt.Errorf("%w: fragment %d of %d", ErrFrame, index, f.Packets())
	}
	d := f.frame
	d.Index = uint16(index)
	if index < int(d.Source) {
		begin := index * FragmentSize
		return d, f.data[begin : begin+d.DataSize()], nil
	}
	if !f.encoded {
		f.encode()
	}
	begin := (index - int(d.Source)) * FragmentSize
	return d, f.parity[begin : begin+FragmentSize], nil
}

// AppendPacket appends the RTP payload of one packet of the current frame to dst, at most
// MaxPacketSize bytes. This is the only copy of the data.
func (f *Fragmenter) AppendPacket(dst []byte, index int) ([]byte, error) {
	d, data, err := f.Fragment(index)
	if err != nil {
		return dst, err
	}
	var descriptor [DescriptorSize]byte
	if _, err := d.MarshalTo(descriptor[:]); err != nil {
		return dst, err
	}
	return append(append(dst, descriptor[:]...), data...), nil
}

// encode computes the parity fragments of the current frame.
func (f *Fragmenter) encode() {
	source, parity := int(f.frame.Source), int(f.frame.Parity)
	if need := parity * FragmentSize; cap(f.parity) < need {
		f.parity = make([]byte, need)
	} else {
		f.parity = f.parity[:need]
		clear(f.parity)
	}
	n := copy(f.last[:], f.data[(source-1)*FragmentSize:])
	clear(f.last[n:])
	f.coder.encode(source, parity, func(index int) []byte {
		switch {
		case index < source-1:
			return f.data[index*FragmentSize : (index+1)*FragmentSize]
		case index == source-1:
			return f.last[:]
		default:
			begin := (index - source) * FragmentSize
			return f.parity[begin : begin+FragmentSize]
		}
	})
	f.encoded = true
}
