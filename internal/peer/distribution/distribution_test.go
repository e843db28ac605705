package distribution

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []time.Duration{100 * time.Microsecond, 10 * time.Millisecond, time.Second, time.Hour} {
		var d Distribution
		var all []time.Duration
		for range 5000 {
			v := time.Duration(random.Float64() * random.Float64() * float64(scale))
			d.Add(v)
			all = append(all, v)
		}
		slices.Sort(all)
		for _, q := range []float64{0, 0.01, 0.5, 0.95, 0.99, 1} {
			want := all[max(0, int(q*5000+0.999999)-1)]
			got := d.Quantile(q)
			if off := (got - want).Abs(); off > want/200+time.Microsecond {
				t.Errorf("scale %v: quantile %g is %v, expected %v", scale, q, got, want)
			}
		}
		if d.Max() != all[len(all)-1] {
			t.Errorf("scale %v: max is %v, expected %v", scale, d.Max(), all[len(all)-1])
		}
	}
}

func TestFew(t *testing.T) {
	var d Distribution
	if d.Quantile(0.5) != 0 || d.Max() != 0 || d.Count() != 0 {
		t.Errorf("expected zeros of an empty distribution, got %v, %v, %d", d.Quantile(0.5), d.Max(), d.Count())
	}
	d.Add(-time.Second)
	d.Add(30 * time.Millisecond)
	if d.Quantile(0.5) != 0 || d.Quantile(0.51) != 30*time.Millisecond || d.Quantile(1) != 30*time.Millisecond {
		t.Errorf("expected 0, 30ms and 30ms, got %v, %v, %v", d.Quantile(0.5), d.Quantile(0.51), d.Quantile(1))
	}
}

// TestClassesAreInOrder checks that each class begins at the end of the previous class.
func TestClassesAreInOrder(t *testing.T) {
	last := -1
	for us := int64(0); us < 1<<20; us += 1 + us>>9 {
		c := class(time.Duration(us) * time.Microsecond)
		if c < last || c > last+1 && us < 1<<8 {
			t.Fatalf("%d µs are in class %d after class %d", us, c, last)
		}
		if m := middle(c); class(m) != c {
			t.Fatalf("the middle of class %d is %v, which is in class %d", c, m, class(m))
		}
		last = c
	}
}

func TestMergeAndReset(t *testing.T) {
	var a, b Distribution
	a.Add(time.Millisecond)
	b.Add(time.Second)
	b.Add(2 * time.Second)
	c := a.Clone()
	c.Merge(&b)
	if c.Count() != 3 || c.Max() != 2*time.Second || (c.Quantile(0.3)-time.Millisecond).Abs() > 5*time.Microsecond {
		t.Errorf("got %d durations, max %v, 30 %% %v", c.Count(), c.Max(), c.Quantile(0.3))
	}
	if a.Count() != 1 {
		t.Errorf("merging into a clone changed the original: %d durations", a.Count())
	}
	c.Reset()
	if c.Count() != 0 || c.Quantile(0.99) != 0 {
		t.Errorf("expected nothing after Reset, got %d durations", c.Count())
	}
}

func BenchmarkAdd(b *testing.B) {
	var d Distribution
	b.ReportAllocs()
	for i := range b.N {
		d.Add(time.Duration(i&1023) * 100 * time.Microsecond)
	}
}
