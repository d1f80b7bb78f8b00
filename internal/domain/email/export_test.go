package email

import "github.com/registrar-dev/registrar/internal/kit/lang"

// Tests render mails in the pseudo-language, too.
func init() { parsed[lang.Pseudo().Code()] = parseIn(lang.Pseudo()) }
