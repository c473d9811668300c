package gosimnet

// chunk is a piece of a byte queue.
type chunk struct {
	next *chunk
	b    []byte // what has been written; its capacity is fixed
	r    int    // how much of it has been read
}

// compact is a chunk for small messages, with its bytes right behind.
type compact struct {
	chunk
	room [smallChunk]byte
}

// The sizes of chunks: for small messages, for pages, and for io.Copy's buffer.
const (
	smallChunk  = 216 // a quarter of a KiB with the chunk itself
	pageChunk   = 4 << 10
	bulkChunk   = 32 << 10
	keptBytes   = 4 << 20 // free bytes that a network keeps
	inlineBytes = 2 << 10 // copied under the lock; more is copied outside
)

// buffers is a network's store of free chunks, by size.
type buffers struct {
	free [3]*chunk
	kept int
}

func chunkClass(size int) int {
	switch {
	case size <= smallChunk:
		return 0
	case size <= pageChunk:
		return 1
	}
	return 2
}

// get takes an empty chunk for n bytes, or for as many as the largest holds.
func (s *buffers) get(n int) *chunk {
	class := chunkClass(n)
	if c := s.free[class]; c != nil {
		s.free[class] = c.next
		s.kept -= cap(c.b)
		c.next = nil
		return c
	}
	if class == 0 {
		c := new(compact)
		c.b = c.room[:0]
		return &c.chunk
	}
	return &chunk{b: make([]byte, 0, [...]int{smallChunk, pageChunk, bulkChunk}[class])}
}

// put gives a chunk back.
func (s *buffers) put(c *chunk) {
	if s.kept+cap(c.b) > keptBytes {
		return
	}
	class := chunkClass(cap(c.b))
	s.kept += cap(c.b)
	c.b, c.r, c.next = c.b[:0], 0, s.free[class]
	s.free[class] = c
}

// chain takes chunks for n bytes.
func (s *buffers) chain(n int) *chunk {
	first := s.get(n)
	last := first
	for n -= cap(first.b); n > 0; n -= cap(last.b) {
		last.next = s.get(n)
		last = last.next
	}
	return first
}

// fill copies b into a chain that has room for it.
func (c *chunk) fill(b []byte) {
	for ; len(b) > 0; c = c.next {
		n := min(len(b), cap(c.b)-len(c.b))
		c.b = append(c.b, b[:n]...)
		b = b[n:]
	}
}

// byteQueue is the bytes of one direction of a stream that have been written and not yet read.
type byteQueue struct {
	head, tail *chunk
}

// write appends a few bytes.
func (q *byteQueue) write(s *buffers, b []byte) {
	if q.tail != nil {
		n := min(len(b), cap(q.tail.b)-len(q.tail.b))
		q.tail.b = append(q.tail.b, b[:n]...)
		b = b[n:]
	}
	if len(b) > 0 {
		c := s.chain(len(b))
		c.fill(b)
		q.link(c)
	}
}

// link appends a chain of chunks.
func (q *byteQueue) link(c *chunk) {
	if q.tail == nil {
		q.head = c
	} else {
		q.tail.next = c
	}
	for c.next != nil {
		c = c.next
	}
	q.tail = c
}

// peek copies the first bytes into b, which is no longer than what there is.
func (q *byteQueue) peek(b []byte) {
	for c := q.head; len(b) > 0; c = c.next {
		n := copy(b, c.b[c.r:])
		b = b[n:]
	}
}

// skip forgets the first n bytes.
func (q *byteQueue) skip(s *buffers, n int) {
	for n > 0 {
		c := q.head
		k := min(n, len(c.b)-c.r)
		c.r += k
		n -= k
		if c.r < len(c.b) {
			return
		}
		if q.head = c.next; q.head == nil {
			q.tail = nil
		}
		s.put(c)
	}
}

// window lists n bytes from offset on after parts, without copying them. What is appended to the queue afterwards
// leaves them alone.
func (q *byteQueue) window(parts [][]byte, offset, n int) [][]byte {
	for c := q.head; c != nil && n > 0; c = c.next {
		b := c.b[c.r:]
		if offset >= len(b) {
			offset -= len(b)
			continue
		}
		b = b[offset:]
		offset = 0
		b = b[:min(n, len(b))]
		n -= len(b)
		parts = append(parts, b)
	}
	return parts
}

// clear gives everything back.
func (q *byteQueue) clear(s *buffers) {
	for c := q.head; c != nil; {
		next := c.next
		s.put(c)
		c = next
	}
	*q = byteQueue{}
}
