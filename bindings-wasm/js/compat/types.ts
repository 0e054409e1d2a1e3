// `types` of cassandra-driver: numbers of the protocol, and the classes of values.

export {
  BigDecimal, Duration, InetAddress, Integer, LocalDate, LocalTime, Long, TimeUuid, Tuple, Uuid, unset,
} from "./values.js";
export { Row } from "./codecs.js";
export { ResultSet } from "./result-set.js";
import { TimeUuid, Uuid } from "./values.js";

export const consistencies = {
  any: 0, one: 1, two: 2, three: 3, quorum: 4, all: 5, localQuorum: 6, eachQuorum: 7, serial: 8, localSerial: 9, localOne: 10,
} as const;

export const dataTypes = {
  custom: 0x00, ascii: 0x01, bigint: 0x02, blob: 0x03, boolean: 0x04, counter: 0x05, decimal: 0x06, double: 0x07, float: 0x08,
  int: 0x09, text: 0x0a, timestamp: 0x0b, uuid: 0x0c, varchar: 0x0d, varint: 0x0e, timeuuid: 0x0f, inet: 0x10, date: 0x11,
  time: 0x12, smallint: 0x13, tinyint: 0x14, duration: 0x15, list: 0x20, map: 0x21, set: 0x22, udt: 0x30, tuple: 0x31,
} as const;

export const responseErrorCodes = {
  serverError: 0x0000, protocolError: 0x000a, badCredentials: 0x0100, unavailableException: 0x1000, overloaded: 0x1001,
  isBootstrapping: 0x1002, truncateError: 0x1003, writeTimeout: 0x1100, readTimeout: 0x1200, readFailure: 0x1300,
  functionFailure: 0x1400, writeFailure: 0x1500, syntaxError: 0x2000, unauthorized: 0x2100, invalid: 0x2200,
  configError: 0x2300, alreadyExists: 0x2400, unprepared: 0x2500, clientWriteFailure: 0x8000,
} as const;

export const distance = { local: 0, remote: 1, ignored: 2 } as const;

/** A random UUID as text. */
export const uuid = (): string => Uuid.random().toString();

/** A UUID of version 1 as text. */
export const timeuuid = (): string => TimeUuid.now().toString();
