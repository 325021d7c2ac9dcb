/** Numbers as people read them. */

const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1, minimumFractionDigits: 1 });
const whole = new Intl.NumberFormat("en");
const signed = new Intl.NumberFormat("en", { signDisplay: "exceptZero", minimumFractionDigits: 3, maximumFractionDigits: 3 });

const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });

const four = new Intl.NumberFormat("en", { minimumFractionDigits: 4, maximumFractionDigits: 4 });

export const asMetric = (value: number | undefined) => (value === undefined ? "–" : four.format(value).replace("-", "−"));
const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 6, useGrouping: false });

/** As in a table: a year has no comma. */
export const asGiven = (value: number) => plain.format(value).replace("-", "−");
export const asNumber = (value: number) => digits.format(value).replace("-", "−");
export const asPercent = (value: number) => percent.format(value).replace("-", "−");
const least = 0.001; // of what has one digit behind the point

/** A share that may be tiny: a bound where the digit behind the point would be a zero. */
export const asSmallPercent = (value: number) => (value > 0 && value < least / 2 ? `< ${percent.format(least)}` : asPercent(value));
export const asCount = (value: number) => whole.format(value);
export const asEffect = (value: number | null) => (value === null ? "–" : signed.format(value).replace("-", "−"));
export const asSteps = (step: number) => (step === 0 ? "itself" : step === 1 ? "1 step" : `${step} steps`);
export const counted = (count: number, noun: string) => `${asCount(count)} ${noun}${count === 1 ? "" : "s"}`;
