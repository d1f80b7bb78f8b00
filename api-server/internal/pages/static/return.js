// Takes the answer back to the LMS without a press of the button, which is there for browsers without scripts.
"use strict";

document.querySelector("form[data-return]").submit();
