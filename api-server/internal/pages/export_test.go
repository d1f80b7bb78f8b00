package pages

import "github.com/registrar-dev/registrar/internal/kit/lang"

// Tests choose the pseudo-language, too.
func init() { languages[lang.Pseudo().Code()] = newLanguage(lang.Pseudo()) }
