package edge

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// pack packs answers of 1 KiB and more with gzip or zstd, as fast as these are.
var pack = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1<<10), gzhttp.CompressionLevel(1), gzhttp.ZstdCompressionLevel(1))
	if err != nil {
		panic("edge: " + err.Error())
	}
	return wrap
}()

// Compress packs the answers of reads for callers who take them so. Answers of changes stay as they are: some hold
// a secret beside what the caller sent, and the length of such an answer, once packed, would tell of the secret.
func Compress(next http.Handler) http.Handler {
	packed := pack(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.Header.Get("Accept-Encoding") != "" {
			packed.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
