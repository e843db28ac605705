package payload

import "fmt"

// Fragmenter cuts the frames of one stream into RTP payloads. The zero value is ready. It keeps the memory of parity for the next frame; without
// parity it keeps nothing and allocates nothing.
type Fragmenter struct {
	frame Descriptor
	data  []byte

	coder   coder
	parity  []byte // the parity fragments, one after the other
	encoded bool
	last    [FragmentSize]byte // the last source fragment, padded with zeros for the code
}

// Begin takes the next frame. Of frame, Prefixed, Quality, Frame and Parity count; Index, Source and Length follow from data. If Prefixed is set, data
// begins with the prefix, which the caller put there by Prefix.AppendTo. Data is not copied: it must stay unchanged until the next Begin.
// Errors wrap ErrFrame.
func (f *Fragmenter) Begin(frame Descriptor, data []byte) error {
	source := SourceFragments(len(data))
	switch {
	case source >= maxPackets:
		return fmt.Errorf("%w: %d bytes, expected at most %d", ErrFrame, len(data), (maxPackets-1)*FragmentSize)
	case frame.Prefixed && len(data) < PrefixSize:
		return fmt.Errorf("%w: %d bytes with a prefix, expected at least %d", ErrFrame, len(data), PrefixSize)
	case int(frame.Parity) > MaxParity(source):
		return fmt.Errorf("%w: %d parity fragments for %d source fragments, expected at most %d", ErrFrame, frame.Parity, source, MaxParity(source))
	}
	frame.Index, frame.Source, frame.Length = 0, uint16(source), uint32(len(data))
	f.frame, f.data, f.encoded = frame, data, false
	return nil
}

// Release forgets the current frame, whose data may change from then on. There is none until the next Begin.
func (f *Fragmenter) Release() { f.frame, f.data = Descriptor{}, nil }

// Packets is the number of packets of the current frame, source and parity.
func (f *Fragmenter) Packets() int { return f.frame.Packets() }

// Fragment returns the descriptor and the data of a packet of the current frame without copying: the data of source fragments refers to what was
// given to Begin, that of parity fragments to memory that the next Begin reuses. Parity is computed when its first fragment is asked for, so that
// it delays no source fragment.
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

// AppendPacket appends the RTP payload of a packet of the current frame to dst, at most MaxPacketSize bytes: this is the only copy of the data.
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
